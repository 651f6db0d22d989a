"""Sessions: read by their account alone, one live turn each, summaries made in the background from what is stored."""

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import override_settings
from django.utils import timezone

from memory.distillers import DistillerUnavailable, UnusableAnswer
from memory.distillers import active as distillers
from memory.errors import Conflict
from memory.models import EmbeddingSpace, JobRun, Session, SessionProjectSummary, SessionTurnClaim
from memory.rules.privacy import find_private
from memory.rules.summary import Turn
from memory.services import summary
from memory.services.erasure import erase
from memory.services.session import claim_turn
from memory.tasks import maintenance_summaries
from tests.conftest import Agent
from tests.distillers.server import completion
from tests.http.calls import INTERACTIONS, MISSING, nothing_changes, refused, report, start
from tests.services.workshop import model as chat_model

pytestmark = pytest.mark.django_db

SESSIONS = "/api/v1/sessions/"


def open_session(agent: Agent, name: str = "talk-1", **fields: object) -> str:
    """The id of a session in which the agent has worked."""
    start(agent.client, session=name, **fields)
    return str(Session.objects.get(account=agent.account, external_id=name).pk)


def act(agent: Agent, session: str, action: object, **fields: object) -> HttpResponse:
    return agent.client.post(f"{SESSIONS}{session}/turn/", {"action": action, **fields}, format="json")


def work(agent: Agent, task: str, response: str = "", signal: str = "", detail: str = "", **fields: object) -> str:
    """An interaction that was answered and judged."""
    pk = start(agent.client, task, session="talk-1", **fields)["id"]
    if response:
        agent.client.patch(f"{INTERACTIONS}{pk}/", {"response": response}, format="json")
    if signal:
        report(agent.client, pk, signal, detail=detail)
    return str(pk)


def later(minutes: float = 11) -> datetime:
    return timezone.now() + timedelta(minutes=minutes)


def read(agent: Agent, name: str = "talk-1") -> dict[str, Any]:
    """The session as the API has it."""
    (found,) = agent.client.get(SESSIONS, {"external_id": name}).json()["results"]
    return dict(agent.client.get(f"{SESSIONS}{found['id']}/").json())


class TestReading:
    def test_a_session_is_there_from_its_first_interaction_on(self, agent: Agent) -> None:
        pk = open_session(agent, project="api")
        shown = agent.client.get(f"{SESSIONS}{pk}/").json()
        assert shown == {
            "id": pk,
            "external_id": "talk-1",
            "project": "api",
            "title": "",
            "summary": "",
            "summarized_through": None,
            "created_at": shown["created_at"],
            "project_summaries": [],
            "turn": None,
        }

    def test_sessions_are_listed_newest_first_and_found_by_name_and_project(self, agent: Agent) -> None:
        first, second = open_session(agent, "talk-1", project="api"), open_session(agent, "talk-2", project="web")

        def found(**params: str) -> list[str]:
            return [row["id"] for row in agent.client.get(SESSIONS, params).json()["results"]]

        assert found() == [second, first]
        assert found(external_id="talk-1") == [first]
        assert found(project="web") == [second]

    def test_another_account_sees_none_of_it(self, agent: Agent, rival: Agent) -> None:
        pk = open_session(agent)
        assert rival.client.get(SESSIONS).json()["results"] == []
        for response in (
            rival.client.get(f"{SESSIONS}{pk}/"),
            rival.client.patch(f"{SESSIONS}{pk}/", {"title": "Mine"}, format="json"),
            act(rival, pk, "claim"),
            act(rival, pk, "heartbeat", token=MISSING),
            act(rival, pk, "release", token=MISSING),
        ):
            refused(response, 404)
        assert agent.client.get(f"{SESSIONS}{pk}/").status_code == 200
        assert not SessionTurnClaim.objects.exists()

    def test_a_list_takes_two_queries_however_long(self, agent: Agent, django_assert_num_queries: Any) -> None:
        for n in range(3):
            open_session(agent, f"talk-{n}", project="api")
        with django_assert_num_queries(2):
            agent.client.get(SESSIONS)


class TestTheTitle:
    def test_is_given_and_taken_away(self, agent: Agent) -> None:
        pk = open_session(agent)
        for title in ("The parser", ""):
            response = agent.client.patch(f"{SESSIONS}{pk}/", {"title": title}, format="json")
            assert response.json() == {"id": pk, "external_id": "talk-1", "title": title}
            assert agent.client.get(f"{SESSIONS}{pk}/").json()["title"] == title

    @pytest.mark.parametrize("title", [None, 7, "x" * 201, "a\0b"])
    def test_that_is_none_is_refused(self, agent: Agent, title: object) -> None:
        pk = open_session(agent)
        with nothing_changes():
            refused(agent.client.patch(f"{SESSIONS}{pk}/", {"title": title}, format="json"), 400, "title")
            refused(agent.client.patch(f"{SESSIONS}{pk}/", {}, format="json"), 400, "title")

    @pytest.mark.parametrize("field", ["summary", "external_id", "account"])
    def test_is_all_that_a_request_can_change(self, agent: Agent, field: str) -> None:
        pk = open_session(agent)
        with nothing_changes():
            body = {"title": "The parser", field: "mine"}
            refused(agent.client.patch(f"{SESSIONS}{pk}/", body, format="json"), 400, field)

    def test_needs_a_key_of_the_loop(self, agent: Agent, reader: Agent) -> None:
        pk = open_session(agent)
        refused(reader.client.patch(f"{SESSIONS}{pk}/", {"title": "x"}, format="json"), 403)
        assert reader.client.get(f"{SESSIONS}{pk}/").status_code == 200


class TestTheTurn:
    def test_is_claimed_with_a_token_that_nobody_is_told_again(self, agent: Agent) -> None:
        pk = open_session(agent)
        held = act(agent, pk, "claim").json()
        assert set(held) == {"token", "owner", "claimed_at", "expires_at"}
        assert held["owner"] == f"api_key:{agent.key.prefix}"
        assert lasts(held) == pytest.approx(120, abs=1)
        assert held["token"] not in str(agent.client.get(f"{SESSIONS}{pk}/").json())
        assert agent.client.get(f"{SESSIONS}{pk}/").json()["turn"] == {k: v for k, v in held.items() if k != "token"}

    def test_that_is_held_is_refused_saying_who_holds_it_and_until_when(self, agent: Agent, machine: Agent) -> None:
        pk = open_session(agent)
        held = act(agent, pk, "claim").json()
        for rival in (machine, agent):
            with nothing_changes():
                detail = refused(act(rival, pk, "claim"), 409)["detail"]
            assert f"api_key:{agent.key.prefix}" in detail
            assert datetime.fromisoformat(held["expires_at"]).isoformat() in detail

    def test_is_another_ones_in_another_session(self, agent: Agent, machine: Agent) -> None:
        first, second = open_session(agent, "talk-1"), open_session(agent, "talk-2")
        assert act(agent, first, "claim").status_code == act(machine, second, "claim").status_code == 200

    def test_is_kept_by_its_holder_alone(self, agent: Agent) -> None:
        pk = open_session(agent)
        held = act(agent, pk, "claim").json()
        let_pass(pk, seconds=60)
        kept = act(agent, pk, "heartbeat", token=held["token"]).json()
        assert set(kept) == {"owner", "claimed_at", "expires_at"}
        assert datetime.fromisoformat(kept["expires_at"]) > timezone.now() + timedelta(seconds=110)
        with nothing_changes():
            refused(act(agent, pk, "heartbeat", token=str(uuid4())), 409)

    def test_is_given_back_by_its_holder_alone(self, agent: Agent, machine: Agent) -> None:
        pk = open_session(agent)
        held = act(agent, pk, "claim").json()
        with nothing_changes():
            refused(act(machine, pk, "release", token=str(uuid4())), 409)
        assert act(agent, pk, "release", token=held["token"]).json() == {
            "owner": None,
            "claimed_at": None,
            "expires_at": None,
        }
        detail = refused(act(agent, pk, "release", token=held["token"]), 409)["detail"]
        assert detail == "Nobody holds this session's turn any more. Claim it."
        assert act(machine, pk, "claim").status_code == 200

    def test_that_ran_out_is_taken_by_another_and_lost_by_its_holder(self, agent: Agent, machine: Agent) -> None:
        pk = open_session(agent)
        lost = act(agent, pk, "claim").json()["token"]
        let_pass(pk, seconds=121)
        assert agent.client.get(f"{SESSIONS}{pk}/").json()["turn"] is None
        taken = act(machine, pk, "claim").json()
        assert taken["owner"] == f"api_key:{machine.key.prefix}"
        for action in ("heartbeat", "release"):
            with nothing_changes():
                assert f"api_key:{machine.key.prefix}" in refused(act(agent, pk, action, token=lost), 409)["detail"]
        assert act(machine, pk, "heartbeat", token=taken["token"]).status_code == 200

    def test_that_ran_out_and_that_nobody_took_is_kept_by_a_late_sign_of_life(self, agent: Agent) -> None:
        pk = open_session(agent)
        token = act(agent, pk, "claim").json()["token"]
        let_pass(pk, seconds=121)
        assert act(agent, pk, "heartbeat", token=token).status_code == 200
        refused(act(agent, pk, "claim"), 409)

    def test_lasts_as_long_as_the_setting_says(self, agent: Agent) -> None:
        pk = open_session(agent)
        with override_settings(SONDER_TURN_LEASE_SECONDS=10.0):
            assert lasts(act(agent, pk, "claim").json()) == pytest.approx(10, abs=1)

    def test_is_claimed_once_by_one_request_however_often_it_is_sent(self, agent: Agent) -> None:
        pk = open_session(agent)
        path, body, key = f"{SESSIONS}{pk}/turn/", {"action": "claim"}, {"Idempotency-Key": "claim-1"}
        first, again = (agent.client.post(path, body, format="json", headers=key) for _ in range(2))
        assert (first.status_code, first.json()) == (again.status_code, again.json()) == (200, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "action"),
            ({"action": "steal"}, "action"),
            ({"action": ["claim"]}, "action"),
            ({"action": "claim", "token": MISSING}, "token"),
            ({"action": "heartbeat"}, "token"),
            ({"action": "release"}, "token"),
            ({"action": "release", "token": "mine"}, "token"),
            ({"action": "claim", "owner": "me"}, "owner"),
            ({"action": "claim", "lease": 9}, "lease"),
        ],
    )
    def test_that_is_asked_for_wrongly_is_refused_naming_the_field(
        self, agent: Agent, body: dict[str, object], field: str
    ) -> None:
        pk = open_session(agent)
        with nothing_changes():
            refused(agent.client.post(f"{SESSIONS}{pk}/turn/", body, format="json"), 400, field)

    def test_needs_a_key_of_the_loop(self, agent: Agent, reader: Agent) -> None:
        refused(act(reader, open_session(agent), "claim"), 403)


def lasts(held: dict[str, str]) -> float:
    """Seconds of a claim."""
    ends, began = (datetime.fromisoformat(held[name]) for name in ("expires_at", "claimed_at"))
    return (ends - began).total_seconds()


def let_pass(session: str, *, seconds: float) -> None:
    """Moves a claim into the past."""
    held = SessionTurnClaim.objects.get(pk=session)
    SessionTurnClaim.objects.filter(pk=session).update(
        claimed_at=held.claimed_at - timedelta(seconds=seconds), expires_at=held.expires_at - timedelta(seconds=seconds)
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ran_out", [False, True])
def test_of_many_who_claim_one_turn_exactly_one_gets_it(space: EmbeddingSpace, agent: Agent, ran_out: bool) -> None:
    session = UUID(open_session(agent))
    if ran_out:
        claim_turn(agent.account.pk, session, "system")
        let_pass(str(session), seconds=500)
    results: list[str] = []

    def claim(n: int) -> None:
        try:
            claim_turn(agent.account.pk, session, f"user:{n}")
            results.append("won")
        except Conflict:
            results.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=claim, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == ["conflict"] * 5 + ["won"]


class TestASummary:
    def test_tells_of_the_work_as_a_whole_and_for_each_project(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates", "The parser reads two digits.", "accepted", project="api")
        last = work(
            agent, "Draw the page of prices", signal="rejected", detail="The page has no prices.", project="web"
        )
        assert summary.summarise_due(later()).sessions == 1
        session = read(agent)
        assert session["summary"].split("\n") == [
            "Task (accepted): Mend the parser of dates",
            "Answer: The parser reads two digits.",
            "Task (rejected): Draw the page of prices",
            "Judged rejected: The page has no prices.",
        ]
        assert session["summarized_through"] == last
        by_project = {row["project"]: row["summary"].split("\n") for row in session["project_summaries"]}
        assert by_project == {
            "api": ["Task (accepted): Mend the parser of dates", "Answer: The parser reads two digits."],
            "web": ["Task (rejected): Draw the page of prices", "Judged rejected: The page has no prices."],
        }

    def test_waits_until_the_work_is_settled(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates")
        assert summary.summarise_due(later(9)).sessions == 0
        assert summary.summarise_due(later(11)).sessions == 1

    def test_goes_on_where_it_stopped_and_is_not_made_again_without_news(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates")
        assert [summary.summarise_due(later()).sessions for _ in range(2)] == [1, 0]
        second = work(agent, "Draw the page of prices")
        assert summary.summarise_due(later()).sessions == 1
        session = read(agent)
        assert session["summarized_through"] == second
        assert "parser" in session["summary"]
        assert "page" in session["summary"]

    def test_is_the_same_however_often_it_is_made(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates", "The parser reads two digits.", "accepted")
        summary.summarise_due(later())
        first = read(agent)
        Session.objects.update(summarized_through=None)
        assert summary.summarise_due(later()).sessions == 1
        assert read(agent) == first

    def test_follows_a_word_that_changed_with_the_next_work(self, agent: Agent) -> None:
        pk = work(agent, "Mend the parser of dates", signal="accepted")
        summary.summarise_due(later())
        report(agent.client, pk, "rejected")
        work(agent, "Draw the page of prices")
        summary.summarise_due(later())
        assert "Task (rejected): Mend the parser of dates" in read(agent)["summary"]

    def test_holds_nothing_private_and_no_more_than_its_bound(self, agent: Agent) -> None:
        for n in range(30):
            work(agent, f"Mend parser {n} of the dates. The token is ghp_abcdefghijklmnopqrstuvwxyz012345678{n % 10}.")
        summary.summarise_due(later())
        told = read(agent)["summary"]
        assert "Mend parser 0 of the dates" in told
        assert len(told) <= 1200
        assert not find_private(told)

    def test_does_not_show_half_of_what_was_cut(self, agent: Agent) -> None:
        filler = "word " * (summary.MAX_TASK // 5 - 4)
        work(agent, f"Mend the parser of dates.\n{filler}\nIt has the key AKIAIOSFODNN7EXAMPLEKEY")
        summary.summarise_due(later())
        assert "AKIA" not in read(agent)["summary"]

    def test_of_a_long_session_is_made_of_its_first_and_last_turns(self, agent: Agent, settings: Any) -> None:
        settings.SONDER_SUMMARY_CHARACTERS = 10_000
        first, last = summary.FIRST_TURNS, summary.LAST_TURNS
        names = [f"letter {a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
        for name in names:
            start(agent.client, f"Write the {name} again", session="talk-1", retrieve=False)
        summary.summarise_due(later())
        told = read(agent)["summary"]
        kept = [name in told for name in names]
        assert kept == [n < first or n >= len(names) - last for n in range(len(names))]

    def test_stays_within_its_account(self, agent: Agent, rival: Agent) -> None:
        work(agent, "Mend the parser of dates")
        work(rival, "Draw the page of prices")
        assert summary.summarise_due(later()).sessions == 2
        assert read(agent)["summary"] == "Task: Mend the parser of dates"
        assert read(rival)["summary"] == "Task: Draw the page of prices"


class TestAfterAnErasure:
    def test_a_summary_is_made_anew_from_what_stays(self, agent: Agent) -> None:
        gone = work(agent, "Mend the parser of dates", project="api")
        stays = work(agent, "Draw the page of prices", project="web")
        summary.summarise_due(later())
        assert "parser" in read(agent)["summary"]
        erase("interaction", UUID(gone), account_id=None, actor="system")
        assert read(agent)["summary"] == ""
        assert summary.summarise_due(later()).sessions == 1
        session = read(agent)
        assert session["summary"] == "Task: Draw the page of prices"
        assert session["summarized_through"] == stays
        assert [row["project"] for row in session["project_summaries"]] == ["web"]

    def test_it_is_made_anew_also_behind_the_cursor(self, agent: Agent) -> None:
        gone, _ = work(agent, "Mend the parser of dates"), work(agent, "Draw the page of prices")
        with override_settings(SONDER_SUMMARY_AFTER_MINUTES=-1.0):
            maintenance_summaries()
            erase("interaction", UUID(gone), account_id=None, actor="system")
            maintenance_summaries()
        assert read(agent)["summary"] == "Task: Draw the page of prices"

    def test_a_session_without_work_is_left_alone(self, agent: Agent) -> None:
        gone = work(agent, "Mend the parser of dates")
        summary.summarise_due(later())
        erase("interaction", UUID(gone), account_id=None, actor="system")
        assert summary.summarise_due(later()).sessions == 0
        assert read(agent)["summary"] == ""

    def test_what_was_erased_while_it_was_summarised_is_not_written(self, agent: Agent, model: "Model") -> None:
        gone, _ = work(agent, "Mend the parser of dates"), work(agent, "Draw the page of prices")
        model.meanwhile = lambda: erase("interaction", UUID(gone), account_id=None, actor="system")
        found = summary.summarise_due(later())
        assert (found.sessions, found.changed) == (0, 1)
        assert read(agent)["summary"] == ""
        assert summary.summarise_due(later()).sessions == 1
        assert read(agent)["summary"] == "1 turns, the first to draw"

    def test_the_title_is_in_no_answer_that_is_kept_for_a_replay(self, agent: Agent) -> None:
        gone = work(agent, "Mend the parser of dates")
        pk = read(agent)["id"]
        key = {"Idempotency-Key": "title-1"}
        body = {"title": "The parser of dates"}
        agent.client.patch(f"{SESSIONS}{pk}/", body, format="json", headers=key)
        erase("interaction", UUID(gone), account_id=None, actor="system")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM idempotency_record WHERE response::text LIKE '%parser%'")
            assert cursor.fetchone() == (0,)


class Model:
    """A summariser that is no extract; `meanwhile` happens once while it thinks."""

    def __init__(self) -> None:
        self.seen: list[Sequence[Turn]] = []
        self.meanwhile: Any = None
        self.answer: str | Exception | None = None

    def __call__(self, turns: Sequence[Turn], most: int) -> str:
        self.seen.append(turns)
        if self.meanwhile:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or f"{len(turns)} turns, the first to {turns[0].task.split()[0].lower()}"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    """It is the summariser."""
    made = Model()
    monkeypatch.setattr(distillers, "summariser", lambda: made)
    return made


class TestAModel:
    def test_makes_the_summary_once_for_the_same_turns(self, agent: Agent, model: Model) -> None:
        work(agent, "Mend the parser of dates", project="api")
        summary.summarise_due(later())
        session = read(agent)
        assert session["summary"] == session["project_summaries"][0]["summary"] == "1 turns, the first to mend"
        assert len(model.seen) == 1

    @pytest.mark.parametrize(
        "answer", ["x" * 1201, "Write to jane.doe@example.com.", UnusableAnswer("It answered with nothing."), " "]
    )
    def test_that_says_nothing_usable_is_replaced_by_the_extract(
        self, agent: Agent, model: Model, answer: str | Exception
    ) -> None:
        work(agent, "Mend the parser of dates")
        model.answer = answer
        summary.summarise_due(later())
        assert read(agent)["summary"] == "Task: Mend the parser of dates"

    def test_on_a_server_is_asked_where_one_is_configured(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates", project="api")
        with chat_model() as server:
            server.answer = completion(json.dumps({"summary": "The date parser was mended."}))
            summary.summarise_due(later())
            assert read(agent)["summary"] == "The date parser was mended."
            assert len(server.requests) == 1
            assert "Mend the parser of dates" in server.requests[0]["messages"][1]["content"]

    def test_on_a_server_is_left_alone_where_summaries_are_to_be_extracts(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates")
        with chat_model() as server, override_settings(SONDER_SUMMARISER="extractive"):
            summary.summarise_due(later())
            assert (read(agent)["summary"], server.requests) == ("Task: Mend the parser of dates", [])

    def test_that_lacks_its_address_is_named_and_nothing_is_written(self, agent: Agent) -> None:
        work(agent, "Mend the parser of dates")
        with override_settings(SONDER_SUMMARISER="chat"):
            done = summary.summarise_due(later())
        assert (done.sessions, done.unavailable) == (0, "The summariser `chat` needs SONDER_DISTILLER_URL.")

    def test_that_is_away_leaves_the_rest_for_the_next_run(self, agent: Agent, model: Model) -> None:
        for name in ("talk-1", "talk-2"):
            start(agent.client, "Mend the parser", session=name)
        with override_settings(SONDER_SUMMARY_AFTER_MINUTES=-1.0):
            model.answer = DistillerUnavailable("The model is away.")
            maintenance_summaries()
            assert JobRun.objects.get().figures["unavailable"] == "The model is away."
            assert not Session.objects.exclude(summary="").exists()
            model.answer = None
            maintenance_summaries()
        assert Session.objects.exclude(summary="").count() == 2


class TestTheJob:
    def test_is_recorded_and_reads_only_what_is_new(self, agent: Agent) -> None:
        with override_settings(SONDER_SUMMARY_AFTER_MINUTES=-1.0):
            work(agent, "Mend the parser of dates")
            maintenance_summaries()
            maintenance_summaries()
        runs = JobRun.objects.filter(job="summaries").order_by("started_at")
        assert [(run.outcome, run.figures["sessions"]) for run in runs] == [("done", 1), ("done", 0)]
        assert runs[0].figures["cursor"] < runs[1].figures["cursor"]

    def test_goes_on_after_a_full_run(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summary, "SESSIONS_AT_ONCE", 2)
        for n in range(5):
            start(agent.client, f"Mend the parser number {n}", session=f"talk-{n}")
        start(agent.client, "Mend the very first parser", session="talk-0")
        with override_settings(SONDER_SUMMARY_AFTER_MINUTES=-1.0):
            for summarised in (2, 4, 5, 5):
                maintenance_summaries()
                assert Session.objects.exclude(summary="").count() == summarised
        assert "very first" in read(agent, "talk-0")["summary"]
        assert SessionProjectSummary.objects.count() == 0

    def test_stops_in_time_and_leaves_the_rest(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summary, "SECONDS_AT_ONCE", -1.0)
        work(agent, "Mend the parser of dates")
        with override_settings(SONDER_SUMMARY_AFTER_MINUTES=-1.0):
            maintenance_summaries()
            assert read(agent)["summary"] == ""
            monkeypatch.setattr(summary, "SECONDS_AT_ONCE", 60.0)
            maintenance_summaries()
        assert read(agent)["summary"]


def test_times_are_utc(agent: Agent) -> None:
    held = act(agent, open_session(agent), "claim").json()
    assert datetime.fromisoformat(held["expires_at"]).tzinfo == UTC
