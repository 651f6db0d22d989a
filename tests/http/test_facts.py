"""Facts in two times: when something was true, and when the store believed it."""

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from django.utils import timezone as django_clock

from memory.errors import Conflict
from memory.models import EmbeddingSpace, Fact
from memory.services.fact import NewFact, record
from tests.conftest import Agent
from tests.http.test_quarantine_walk import start

pytestmark = pytest.mark.django_db


def tell(agent: Agent, text: str, **fields: object):
    body = {"project": "api", "text": text, **fields}
    return agent.client.post("/api/v1/facts/", body, format="json")


def told(agent: Agent, **params: object) -> list[str]:
    return [fact["text"] for fact in agent.client.get("/api/v1/facts/", params).json()["results"]]


def now() -> str:
    return datetime.now(UTC).isoformat()


def test_a_fact_reaches_the_next_interaction_of_its_project_and_no_other(agent: Agent) -> None:
    assert tell(agent, "Tests run with tox.", key="runner").status_code == 201
    assert [fact["text"] for fact in start(agent, "anything", project="api")["facts"]] == ["Tests run with tox."]
    assert start(agent, "anything", project="web")["facts"] == []
    assert start(agent, "anything")["facts"] == []


def test_one_key_has_one_value_at_a_time(agent: Agent) -> None:
    tell(agent, "Tests run with tox.", key="runner")
    answer = tell(agent, "Tests run with nox.", key="runner")
    assert answer.status_code == 409
    assert "key" in answer.json()["errors"]
    assert told(agent) == ["Tests run with tox."]


def test_consecutive_values_of_a_key_are_told_apart_by_as_of(agent: Agent) -> None:
    tell(agent, "Tests run with tox.", key="runner", valid_until="2026-03-01T00:00:00Z")
    assert tell(agent, "Tests run with nox.", key="runner", valid_from="2026-03-01T00:00:00Z").status_code == 201
    assert told(agent, as_of="2026-02-28T23:59:59Z") == ["Tests run with tox."]
    assert told(agent, as_of="2026-03-01T00:00:00Z") == ["Tests run with nox."]


@pytest.mark.parametrize("hours", [-12, 14])
def test_a_moment_is_the_same_moment_in_every_zone(agent: Agent, hours: int) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    tell(agent, "Before.", key="k", valid_until=moment.isoformat())
    tell(agent, "After.", key="k", valid_from=moment.isoformat())
    zone = timezone(timedelta(hours=hours))
    assert told(agent, as_of=moment.astimezone(zone).isoformat()) == ["After."]
    assert told(agent, as_of=(moment - timedelta(seconds=1)).astimezone(zone).isoformat()) == ["Before."]


def test_a_correction_replaces_and_what_was_believed_stays_known(agent: Agent) -> None:
    wrong = tell(agent, "The port is 8080.", key="port").json()
    before = now()
    answer = agent.client.post(f"/api/v1/facts/{wrong['id']}/correct/", {"text": "The port is 9090."}, format="json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["supersedes"] == wrong["id"]
    assert told(agent) == ["The port is 9090."]
    assert told(agent, believed_at=before) == ["The port is 8080."]
    assert told(agent, believed_at=now()) == ["The port is 9090."]


def test_at_each_moment_of_a_correction_exactly_one_of_the_two_is_believed(agent: Agent) -> None:
    first = tell(agent, "The port is 8080.", key="port").json()
    second = agent.client.post(f"/api/v1/facts/{first['id']}/correct/", {"text": "The port is 9090."}, format="json")
    old, new = Fact.objects.get(pk=first["id"]), Fact.objects.get(pk=second.json()["id"])
    assert old.retracted_at == new.recorded_at > old.recorded_at
    microsecond = timedelta(microseconds=1)
    moments = [old.recorded_at, new.recorded_at - microsecond, new.recorded_at, new.recorded_at + microsecond]
    believed = [told(agent, believed_at=moment.isoformat()) for moment in moments]
    assert believed == [["The port is 8080."]] * 2 + [["The port is 9090."]] * 2


def test_a_retraction_is_timed_by_the_clock_that_timed_the_record(agent: Agent, monkeypatch) -> None:
    first = tell(agent, "The port is 8080.", key="port").json()
    monkeypatch.setattr(django_clock, "now", lambda: datetime(2001, 1, 1, tzinfo=UTC))
    agent.client.post(f"/api/v1/facts/{first['id']}/retract/", {}, format="json")
    fact = Fact.objects.get()
    assert fact.retracted_at is not None
    assert fact.retracted_at > fact.recorded_at


def test_a_retracted_fact_has_no_successor_and_stays_gone(agent: Agent) -> None:
    fact = tell(agent, "The port is 8080.", key="port").json()
    tell(agent, "Logs go to stderr.", key="logs")
    before = now()
    assert agent.client.post(f"/api/v1/facts/{fact['id']}/retract/", {}, format="json").status_code == 200
    assert told(agent) == ["Logs go to stderr."]
    assert sorted(told(agent, believed_at=before)) == ["Logs go to stderr.", "The port is 8080."]
    assert [f["text"] for f in start(agent, "anything", project="api")["facts"]] == ["Logs go to stderr."]
    again = agent.client.post(f"/api/v1/facts/{fact['id']}/retract/", {}, format="json")
    assert again.status_code == 409
    assert tell(agent, "The port is 9090.", key="port").status_code == 201


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project", "No Slug"),
        ("text", ""),
        ("text", "The key is ghp_abcdefghijklmnopqrstuvwxyz0123456789."),
        ("text", "x" * 2001),
        ("key", 7),
        ("valid_from", "yesterday"),
        ("valid_until", "2020-01-01T00:00:00Z"),
        ("recorded_at", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_bad_fact_names_the_field_and_stores_nothing(agent: Agent, field: str, value: object) -> None:
    fields = {"project": "api", "text": "Tests run with tox.", "valid_from": "2026-01-01T00:00:00Z", field: value}
    answer = agent.client.post("/api/v1/facts/", fields, format="json")
    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert not Fact.objects.exists()


def test_another_account_sees_and_changes_nothing(agent: Agent, rival: Agent) -> None:
    fact = tell(agent, "Tests run with tox.").json()
    assert told(rival) == []
    for action in ("retract", "correct"):
        body = {"text": "Mine now."} if action == "correct" else {}
        assert rival.client.post(f"/api/v1/facts/{fact['id']}/{action}/", body, format="json").status_code == 404
    assert told(agent) == ["Tests run with tox."]


def test_facts_are_found_by_their_words(agent: Agent) -> None:
    tell(agent, "Tests run with tox.")
    tell(agent, "Logs go to stderr.")
    assert told(agent, q="testing") == ["Tests run with tox."]


@pytest.mark.django_db(transaction=True)
def test_of_two_writers_of_one_key_exactly_one_wins(space: EmbeddingSpace, agent: Agent) -> None:
    start(agent, "anything", project="api")
    results: list[str] = []

    def write(n: int) -> None:
        try:
            record(agent.account.pk, NewFact(project="api", text=f"Port {n}.", key="port"))
            results.append("won")
        except Conflict:
            results.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == ["conflict"] * 3 + ["won"]
