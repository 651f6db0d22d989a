"""The scripted agent inside this process, with the worker's tasks run whenever it waits for them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.test import override_settings

from memory import tasks
from memory.distillers import DistillerUnavailable, Material, UnusableAnswer
from memory.distillers.chat import ChatDistiller, ChatSummariser
from memory.errors import Conflict
from memory.management.agent import play
from memory.management.agent.client import PROJECT, Client, ServerRefused
from memory.management.agent.model import BABBLE, Model, PortTaken
from memory.management.agent.play import Player
from memory.management.agent.script import ORDINARY, Script
from memory.management.agent.told import REASONS, Told
from memory.management.commands.demo_agent import refuse_others
from memory.models import Account, ApiKey, Interaction, Lesson
from memory.rules.summary import Turn
from memory.services import sampling
from memory.services.keys import create_key
from tests.conftest import Agent, make_agent

pytestmark = pytest.mark.django_db

INTERACTIONS = 80  # a short run: it takes no bad luck into account


def answered(request: httpx.Request) -> httpx.Response:
    """The product's answer to a request, within this process and its transaction."""
    path, kind = request.url.raw_path.decode(), "application/json"
    headers = {"Authorization": request.headers["Authorization"]}
    answer = Browser(raise_request_exception=False).generic(
        request.method, path, request.content, content_type=kind, headers=headers
    )
    return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


@pytest.fixture
def client(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of this process; to wait is to let the worker work."""

    def until(happened: Callable[[], bool], seconds: float, **_: Any) -> bool:
        tasks.distill_sweep()
        tasks.credit_sweep()
        return happened()

    monkeypatch.setattr(play, "until", until)
    monkeypatch.setattr(play, "SAMPLED", 3)
    made = create_key(account, name="k", source="caller", scopes=["loop", "read", "govern"])
    with Client("http://testserver", made.secret, transport=httpx.MockTransport(answered)) as client:
        yield client


def played(client: Client, run: int = 1) -> Told:
    player = Player(client, Script(n=run), interactions=INTERACTIONS, patience=1.0)
    assert list(player.play()) == list(range(1, INTERACTIONS + 1))
    tasks.maintenance_contradictions()
    return player.look()


@override_settings(SONDER_TRUST_POLICY="trial")
def test_under_the_default_policy_everything_comes_of_it_and_of_a_second_run(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A correction brings the harmful lesson back; only a store with `seed_demo` has something to merge."""
    monkeypatch.setattr(sampling, "withheld_share", lambda *_: 0.2)  # a coin that keeps the run short
    for run in (1, 2):
        told = played(client, run)
        assert told.missing == ["prune plan"], told
        assert told.interactions == INTERACTIONS
        assert told.shown["stored"] == 15
        assert "probation_opened" not in told.events
    # All of it lies in a project of its own.
    assert set(Interaction.objects.values_list("project__slug", flat=True)) == {PROJECT}
    assert not Lesson.objects.exclude(source_interaction__in=Interaction.objects.values("pk")).exists()


def test_without_a_worker_everything_that_needs_one_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "until", lambda happened, seconds, **_: happened())
    monkeypatch.setattr(play, "HARMED", 6)
    told = played(client)
    # To withdraw or to call off needs nobody.
    assert set(told.missing) == {*REASONS, "quarantined", "rehabilitated", "contradiction", "prune plan"} - {
        "contradicted", "cancelled_by_operator",
    }  # fmt: skip


def test_what_the_server_refuses_is_told_with_its_reason(account: Account, agent: Agent) -> None:
    reader = make_agent(account, "unknown", ["read"])
    with Client("http://testserver", reader.token, transport=httpx.MockTransport(answered)) as client:
        with pytest.raises(ServerRefused, match="POST interactions/: 403 This needs a key with the scope 'loop'"):
            client.start("x", 1)
        assert list(client.pages("lessons/")) == []


def test_a_server_that_asks_for_a_pause_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("memory.management.agent.client.time.sleep", slept.append)
    answers = [
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(429, headers={"Retry-After": "7000"}),
        httpx.Response(429),
        httpx.Response(200, json={"state": "active"}),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    with Client("http://localhost", "key", transport=transport) as client:
        assert client.get("lessons/1/") == {"state": "active"}
    assert slept == [7.0, 65.0, 1.0]


class TestAStoreThatOthersWorkWith:
    def test_is_refused_for_their_lessons(self, lesson: Callable[[str], Lesson]) -> None:
        refuse_others()
        lesson("Freeze the clock with `time_machine.travel` in tests that compare dates.")
        with pytest.raises(Conflict, match="lessons or work of others"):
            refuse_others()

    def test_is_refused_for_their_work(self, agent: Agent) -> None:
        agent.client.post("/api/v1/interactions/", {"task": "their work"}, format="json")
        with pytest.raises(Conflict, match="lessons or work of others"):
            refuse_others()

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_is_not_where_lessons_are_not_shared(self, agent: Agent) -> None:
        agent.client.post("/api/v1/interactions/", {"task": "their work"}, format="json")
        refuse_others()


class TestCommand:
    def test_a_run_that_is_too_short_for_the_story_is_refused_at_once(self) -> None:
        with pytest.raises(CommandError, match=f"use {play.LEAST} or more"):
            call_command("demo_agent", interactions=play.LEAST - 1)

    def test_a_server_that_does_not_answer_is_named_and_no_key_stays_valid(self) -> None:
        with pytest.raises(CommandError, match=r"http://127\.0\.0\.1:1/api/v1/ does not answer"):
            call_command("demo_agent", url="http://127.0.0.1:1")
        (made,) = ApiKey.objects.filter(name="demo agent")
        assert made.revoked_at is not None


class TestModel:
    @pytest.fixture
    def model(self) -> Iterator[Model]:
        with Model(Script(n=1), 0) as model:
            yield model

    @staticmethod
    def proposed(model: Model, task: str, response: str) -> str | None:
        """What the product's own client makes of its answer."""
        asking = ChatDistiller(base_url=model.url, model="any", timeout=5.0)
        try:
            return asking.propose(Material(task=task, response=response))
        finally:
            asking.close()

    def test_takes_the_sentence_that_the_agent_called_its_lesson(self, model: Model) -> None:
        taught = Script(n=1).lessons("taught")[0]
        assert self.proposed(model, taught.task, taught.response) == taught.text
        assert self.proposed(model, "a day's work", ORDINARY) is None

    def test_summarises_a_session(self, model: Model) -> None:
        asking = ChatSummariser(base_url=model.url, model="any", timeout=5.0)
        assert asking([Turn(task="Mend it"), Turn(task="Ship it")], 900) == "Work on 2 tasks: Mend it"
        asking.close()

    def test_fails_where_the_story_needs_a_failure(self, model: Model) -> None:
        (garbled,), (unanswered,) = Script(n=1).lessons("garbled"), Script(n=1).lessons("unanswered")
        assert model.answer({"task": garbled.task, "response": garbled.response}) == BABBLE
        with pytest.raises(UnusableAnswer):
            self.proposed(model, garbled.task, garbled.response)
        with pytest.raises(DistillerUnavailable) as refusal:
            self.proposed(model, unanswered.task, unanswered.response)
        assert refusal.value.retry_after == 1.0

    def test_holds_its_answer_until_the_agent_has_changed_its_mind(self, model: Model) -> None:
        withdrawn = Script(n=1).lessons("withdrawn")[0]
        with ThreadPoolExecutor() as threads:
            answer = threads.submit(self.proposed, model, withdrawn.task, withdrawn.response)
            assert model.is_asked(withdrawn.task, 5.0)
            assert not answer.done()
            model.release(withdrawn.task)
            assert answer.result(5.0) == withdrawn.text

    def test_refuses_a_port_in_use_with_a_sentence(self, model: Model) -> None:
        port = int(model.url.rpartition(":")[2].removesuffix("/v1"))
        with pytest.raises(PortTaken, match=f"cannot listen on port {port}"):
            Model(Script(n=1), port)
