"""The scripted agent inside this process, with the worker's tasks run whenever it waits for them."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.test import Client as Browser
from django.test import override_settings

from memory import tasks
from memory.management.agent import play
from memory.management.agent.client import Client, ServerRefused
from memory.management.agent.play import Player, Told
from memory.management.agent.script import Script
from memory.models import Account
from memory.services.keys import create_key
from tests.conftest import Agent, make_agent

pytestmark = pytest.mark.django_db

INTERACTIONS = 70  # a short run: it takes no bad luck into account


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
def test_under_the_default_policy_everything_comes_of_it_and_of_a_second_run(client: Client) -> None:
    """A correction brings the harmful lesson back; only a store with `seed_demo` has something to merge."""
    for run in (1, 2):
        told = played(client, run)
        assert told.missing == ["prune plan"], told
        assert told.interactions == INTERACTIONS
        assert told.distillations["stored"] == 15
        assert "probation_opened" not in told.events


def test_without_a_worker_everything_that_needs_one_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "until", lambda happened, seconds, **_: happened())
    monkeypatch.setattr(play, "HARMED", 6)
    told = played(client)
    assert set(told.missing) == {*play.REASONS, "quarantined", "rehabilitated", "contradiction", "prune plan"} - {
        "contradicted"  # a withdrawal needs nobody
    }


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
