"""Every request of the client against the real site: what it answers, and what it refuses."""

from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler

import sonder_client as sonder
from memory.models import Interaction, Lesson, Outcome
from memory.services.credit import sweep
from sonder_client import Sonder
from tests.conftest import Agent
from tests.http.calls import MISSING, nothing_changes

pytestmark = pytest.mark.django_db

TEXT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TASK = "pass a timeout to the requests.get call of the worker"
Connect = Callable[..., Sonder]


@pytest.fixture
def client(agent: Agent, connect: Connect) -> Sonder:
    return connect(agent)


def test_the_loop_in_a_block(agent: Agent, client: Sonder, lesson: Callable[..., Lesson]) -> None:
    stored = lesson(TEXT)
    with client.interaction(TASK, project="api", session="talk", model="m") as it:
        assert [found.id for found in it.started.lessons] == [stored.pk]
        assert (it.started.mode, it.started.lessons[0].standing) == ("hybrid", "active")
        assert TEXT in it.context
        done = it.respond("It works.", tokens_in=7)
        said = it.outcome("tests_passed", detail="12 of 12")
    assert (done.id, done.response, done.tokens_in, done.tokens_out) == (it.id, "It works.", 7, None)
    assert (said.source, said.reward) == ("caller", 1.0)
    row = Interaction.objects.get(pk=it.id)
    assert (row.task, row.project.slug, row.session.external_id, row.model) == (TASK, "api", "talk", "m")
    sweep()
    (outcome,) = client.list_outcomes(interaction=it.id, credited=True)
    assert (outcome.signal, outcome.detail, outcome.sequence) == ("tests_passed", "12 of 12", 1)
    assert outcome.credited_at is not None
    assert outcome.credited_at.tzinfo is not None


def test_a_failure_that_was_named_leaves_the_block_and_is_reported(client: Sonder) -> None:
    with pytest.raises(ZeroDivisionError), client.interaction(TASK, failures=ZeroDivisionError) as it:
        _ = 1 // 0
    outcome = Outcome.objects.get(interaction=it.id)
    assert (outcome.signal, outcome.detail) == ("failed", "ZeroDivisionError: integer division or modulo by zero")


def test_any_other_exception_says_nothing_about_the_work(client: Sonder) -> None:
    with pytest.raises(KeyError), client.interaction(TASK, failures=ZeroDivisionError):
        raise KeyError
    assert not Outcome.objects.exists()


def test_what_is_left_out_stays_and_none_clears(client: Sonder) -> None:
    work = client.start_interaction(TASK, retrieve=False).id
    client.finish_interaction(work, response="one", tokens_in=1, token_source="openai")
    kept = client.finish_interaction(str(work), tokens_out=2)
    assert (kept.response, kept.tokens_in, kept.tokens_out, kept.token_source) == ("one", 1, 2, "openai")
    assert client.finish_interaction(work, response=None).response is None
    assert client.get_interaction(work).tokens_out == 2


def test_looking_up_explains_and_records_nothing(client: Sonder, lesson: Callable[..., Lesson]) -> None:
    stored = lesson(TEXT)
    with nothing_changes():
        plain, explained = client.retrieve_lessons(TASK), client.retrieve_lessons(TASK, k=1, explain=True)
    assert (plain.explain, plain.note) == (None, None)
    assert explained.explain is not None
    assert [(one.id, one.reason, one.gate) for one in explained.explain] == [(stored.pk, "", "passed")]


def test_preferences_and_facts(client: Sonder) -> None:
    client.start_interaction("I always prefer tabs over spaces in this code base.")
    (wish,) = client.list_preferences(scope="global", enabled=True)
    assert (wish.revision, wish.enabled) == (1, True)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    fact = client.record_fact("api", "The database is PostgreSQL 17.", key="database", valid_from=since)
    better = client.correct_fact(fact.id, text="The database is PostgreSQL 18.")
    assert (better.supersedes, better.valid_from) == (fact.id, since)
    assert [one.text for one in client.list_facts(project="api", key="database", as_of=since)] == [better.text]
    assert [one.id for one in client.list_facts(q="PostgreSQL")] == [better.id]
    assert client.retract_fact(better.id).retracted_at is not None
    assert list(client.list_facts(project="api")) == []
    assert list(client.list_facts(project="api", believed_at=since)) == []


def test_sessions_and_the_turn_in_one(client: Sonder) -> None:
    client.start_interaction(TASK, session="talk", project="api")
    (session,) = client.list_sessions(external_id="talk")
    assert client.name_session(session.id, "Timeouts").title == "Timeouts"
    turn = client.claim_turn(session.id)
    assert turn.token is not None
    with pytest.raises(sonder.Conflict, match="until"):
        client.claim_turn(session.id)
    assert client.keep_turn(session.id, turn.token).owner == turn.owner
    detail = client.get_session(session.id)
    assert (detail.title, detail.project) == ("Timeouts", "api")
    assert detail.turn is not None
    assert client.release_turn(session.id, turn.token).owner is None
    assert client.get_session(session.id).turn is None


def test_tasks_that_wait_for_each_other(client: Sonder) -> None:
    first = client.add_task("write it", project="api", owner="ada")
    second = client.add_task("ship it", detail="on Monday", priority=1, parent=first.id)
    waiting = client.add_dependency(second.id, first.id)
    assert waiting.depends_on == (first.id,)
    assert [task.id for task in client.list_tasks(ready=True)] == [first.id]
    with pytest.raises(sonder.Conflict):
        client.change_task(second.id, status="in_progress")
    assert client.change_task(first.id, status="done", project=None).project is None
    assert client.get_task(second.id).parent == first.id
    assert client.change_task(second.id, parent=None).parent is None
    client.note_task(second.id, "nearly")
    assert client.remove_dependency(second.id, first.id).depends_on == ()
    events = list(client.list_task_events(second.id))
    assert {event.event for event in events} >= {"created", "note", "dependency_added", "dependency_removed"}
    assert [task.title for task in client.list_tasks(status="pending")] == ["ship it"]


def test_a_list_goes_on_over_its_pages(client: Sonder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonder_client.exchange.PAGE", 2)
    made = [client.start_interaction(f"task {n}", session="talk", retrieve=False).id for n in range(5)]
    client.start_interaction("another", retrieve=False)
    assert [one.id for one in client.list_interactions(session="talk")] == made[::-1]
    after = client.get_interaction(made[2]).created_at
    assert [one.id for one in client.list_interactions(session="talk", created_after=after)] == made[:1:-1]


class TestRefusals:
    def test_each_has_its_type_the_sentence_and_the_fields(
        self, agent: Agent, reader: Agent, rival: Agent, connect: Connect
    ) -> None:
        client = connect(agent)
        work = client.start_interaction(TASK, retrieve=False).id
        with nothing_changes():
            with pytest.raises(sonder.Invalid) as invalid:
                client.record_outcome(work, "great")
            with pytest.raises(sonder.Forbidden, match="scope 'loop'"):
                connect(reader).start_interaction(TASK)
            with pytest.raises(sonder.NotFound):
                connect(rival).get_interaction(work)
            with pytest.raises(sonder.Unauthorized, match="Ask an operator"):
                Sonder("http://localhost", "wrong", transport=client._http._transport).retrieve_lessons(TASK)
        refusal = invalid.value
        assert (refusal.status, refusal.title) == (400, "Bad Request")
        assert refusal.errors["signal"][0].startswith("choose one of tests_passed")
        assert "\n  signal: choose one of tests_passed" in str(refusal)
        assert len(refusal.request_id) == 36

    def test_the_request_id_is_the_one_that_the_server_logs(
        self, agent: Agent, connect: Connect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def break_down(*_: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("memory.services.interaction.start", break_down)
        with pytest.raises(sonder.Refused, match="The log has the reason") as caught:
            connect(agent, transport=httpx.WSGITransport(WSGIHandler(), raise_app_exceptions=False)).start_interaction(
                TASK
            )
        (line,) = (
            dict(record.msg) for record in caplog.records if record.name == "django_structlog.middlewares.request"
        )
        assert (line["request_id"], line["key"]) == (caught.value.request_id, agent.key.prefix)

    def test_the_same_key_for_another_request_is_a_conflict(self, client: Sonder) -> None:
        first = client.start_interaction(TASK, idempotency_key="abc")
        assert client.start_interaction(TASK, idempotency_key="abc") == first
        with pytest.raises(sonder.Conflict, match="Use a new key"):
            client.start_interaction("another", idempotency_key="abc")
        assert Interaction.objects.count() == 1

    @pytest.mark.parametrize("wrong", ["7", "", "../outcomes"])
    def test_a_text_that_is_no_id_goes_nowhere(self, client: Sonder, wrong: str) -> None:
        with pytest.raises(ValueError, match="UUID"):
            client.get_interaction(wrong)
        with pytest.raises(sonder.NotFound):
            client.get_interaction(MISSING)
