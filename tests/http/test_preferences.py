"""Preferences change only by journalled, version-checked refinements, and every one can be taken back."""

import threading

import pytest
from django.db import connection

from memory.errors import Conflict
from memory.models import EmbeddingSpace, Preference, RefinementHistory
from memory.services.preference import Refinement, refine
from tests.conftest import Agent, make_agent
from tests.http.test_quarantine_walk import start

pytestmark = pytest.mark.django_db
NOTE = [{"kind": "note", "text": "Sam said so twice."}]


@pytest.fixture
def governor(account) -> Agent:
    """A key that may change preferences."""
    return make_agent(account, "caller", ["loop", "read", "govern"])


def learned(agent: Agent, task: str = "I prefer tabs over spaces.", **fields: object) -> dict:
    start(agent, task, **fields)
    return agent.client.get("/api/v1/preferences/").json()["results"][0]


def change(agent: Agent, preference: str, version: int, **fields: object):
    body = {"expected_version": version, "evidence": NOTE, "expected_outcome": "Fewer edits.", **fields}
    return agent.client.post(f"/api/v1/preferences/{preference}/refinements/", body, format="json")


def roll_back(agent: Agent, refinement: str, version: int):
    return agent.client.post(
        f"/api/v1/refinements/{refinement}/rollback/", {"expected_version": version}, format="json"
    )


def test_what_a_person_wishes_is_learned_and_handed_out_with_the_next_interaction(governor: Agent) -> None:
    assert start(governor, "I prefer tabs over spaces.")["preferences"] == [
        {
            "id": str(Preference.objects.get().pk),
            "scope": "global",
            "key": "tabs-over-spaces",
            "text": "I prefer tabs over spaces.",
            "confidence": 0.5,
        }
    ]
    again = learned(governor)
    assert (again["evidence_count"], again["confidence"], again["revision"]) == (2, 0.75, 1)


def test_a_wish_in_a_project_stays_in_the_project(governor: Agent) -> None:
    assert learned(governor, project="api")["scope"] == "project:api"
    assert start(governor, "anything", project="web")["preferences"] == []
    assert len(start(governor, "anything", project="api")["preferences"]) == 1


def test_a_refinement_changes_the_text_and_the_journal_tells_all_of_it(governor: Agent) -> None:
    found = learned(governor)
    answer = change(governor, found["id"], 1, text="I prefer four spaces.")
    assert answer.status_code == 201, answer.content
    entry = answer.json()
    assert (entry["before"]["text"], entry["after"]["text"]) == ("I prefer tabs over spaces.", "I prefer four spaces.")
    assert (entry["before_version"], entry["after_version"], entry["evidence"]) == (1, 2, NOTE)
    assert entry["actor"] == f"api_key:{governor.key.prefix}"
    assert Preference.objects.get().text == "I prefer four spaces."


def test_a_stale_version_is_refused_with_the_current_one(governor: Agent) -> None:
    found = learned(governor)
    change(governor, found["id"], 1, enabled=False)
    answer = change(governor, found["id"], 1, text="Something else entirely.")
    assert answer.status_code == 409
    assert answer.json()["errors"] == {"expected_version": ["the current version is 2."]}


def test_a_change_that_changes_nothing_is_refused(governor: Agent) -> None:
    found = learned(governor)
    assert change(governor, found["id"], 1, text=found["text"]).status_code == 400
    assert change(governor, found["id"], 1).status_code == 400
    assert Preference.objects.get().revision == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evidence", []),
        ("evidence", NOTE * 17),
        ("evidence", "because"),
        ("evidence", [{"kind": "note"}]),
        ("evidence", [{"kind": "outcome", "id": "01a22a10-0000-7000-8000-000000000000"}]),
        ("expected_outcome", ""),
        ("expected_outcome", "x" * 2049),
        ("text", ""),
        ("text", "Use the token ghp_abcdefghijklmnopqrstuvwxyz0123456789."),
        ("enabled", "yes"),
        ("expected_version", 0),
        ("revision", 7),
    ],
)
def test_a_bad_proposal_names_the_field_and_changes_nothing(governor: Agent, field: str, value: object) -> None:
    found = learned(governor)
    answer = change(governor, found["id"], 1, **{"text": "I prefer four spaces.", field: value})
    assert answer.status_code == 400
    assert any(name.startswith(field) for name in answer.json()["errors"])
    assert not RefinementHistory.objects.exists()


def test_evidence_may_name_an_outcome_of_the_account_and_no_other(governor: Agent, rival: Agent) -> None:
    found = learned(governor)
    ids = []
    for agent in (governor, rival):
        work = start(agent, "anything")["id"]
        said = agent.client.post(f"/api/v1/interactions/{work}/outcomes/", {"signal": "used"}, format="json").json()
        ids.append(said["id"])
    own, foreign = ({"evidence": [{"kind": "outcome", "id": i}]} for i in ids)
    assert change(governor, found["id"], 1, enabled=False, **foreign).status_code == 400
    assert change(governor, found["id"], 1, enabled=False, **own).status_code == 201


def test_a_rollback_writes_what_was_before_as_a_new_version(governor: Agent) -> None:
    found = learned(governor)
    first = change(governor, found["id"], 1, text="I prefer four spaces.").json()
    answer = roll_back(governor, first["id"], 2)
    assert answer.status_code == 201, answer.content
    entry = answer.json()
    assert (entry["operation"], entry["parent"], entry["after_version"]) == ("rollback", first["id"], 3)
    assert Preference.objects.get().text == found["text"]
    undone = roll_back(governor, entry["id"], 3)
    assert undone.status_code == 201, "a rollback can itself be rolled back"
    assert Preference.objects.get().text == "I prefer four spaces."


def test_a_refinement_that_was_followed_by_another_cannot_be_taken_back_alone(governor: Agent) -> None:
    found = learned(governor)
    first = change(governor, found["id"], 1, text="I prefer four spaces.").json()
    change(governor, found["id"], 2, text="I prefer two spaces.")
    answer = roll_back(governor, first["id"], 3)
    assert answer.status_code == 409
    assert "has changed since" in answer.json()["detail"]


def test_a_tampered_journal_refuses(governor: Agent) -> None:
    found = learned(governor)
    first = change(governor, found["id"], 1, text="I prefer four spaces.").json()
    with connection.cursor() as cursor:  # only a superuser with triggers off could do this
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("""UPDATE refinement_history SET before_json = '{"text": "Obey me."}'""")
        cursor.execute("SET session_replication_role = DEFAULT")
    answer = roll_back(governor, first["id"], 2)
    assert answer.status_code == 409
    assert "does not match its digests" in answer.json()["detail"]


def test_another_account_sees_and_changes_nothing(governor: Agent, rival_account) -> None:
    found = learned(governor)
    intruder = make_agent(rival_account, "caller", ["loop", "read", "govern"])
    assert intruder.client.get("/api/v1/preferences/").json()["results"] == []
    assert intruder.client.get(f"/api/v1/preferences/{found['id']}/refinements/").status_code == 404
    assert change(intruder, found["id"], 1, enabled=False).status_code == 404
    entry = change(governor, found["id"], 1, enabled=False).json()
    assert roll_back(intruder, entry["id"], 2).status_code == 404


def test_a_key_without_govern_may_read_and_not_change(agent: Agent) -> None:
    found = learned(agent)
    assert change(agent, found["id"], 1, enabled=False).status_code == 403


def test_a_disabled_preference_is_handed_out_no_more(governor: Agent) -> None:
    found = learned(governor)
    change(governor, found["id"], 1, enabled=False)
    assert start(governor, "anything")["preferences"] == []


@pytest.mark.django_db(transaction=True)
def test_of_ten_appliers_with_one_version_exactly_one_wins(space: EmbeddingSpace, governor: Agent) -> None:
    found = learned(governor)
    results: list[str] = []

    def apply(n: int) -> None:
        request = Refinement(
            expected_version=1, changes={"text": f"Wording {n}."}, evidence=NOTE, expected_outcome="Better."
        )
        try:
            refine(governor.account.pk, found["id"], request, "system")
            results.append("won")
        except Conflict:
            results.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=apply, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == ["conflict"] * 9 + ["won"]
    assert Preference.objects.get().revision == 2
