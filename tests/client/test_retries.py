"""What is sent again, how often, and that a write is done once however often it was sent."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

import sonder_client as sonder
from memory.models import Interaction, Outcome
from sonder_client import AsyncSonder, Retries, Sonder
from tests.client.conftest import QUICK
from tests.conftest import Agent
from tests.system.stores import ROOT

KEY = "sonder_aaaaaaaaaaaa_" + "s" * 43
TASK = "pass a timeout to the requests.get call of the worker"
STARTED = {
    "id": "01890000-0000-7000-8000-000000000000", "context": "", "lessons": [], "mode": "none", "preferences": [],
    "facts": [],
}  # fmt: skip
Step = httpx.Response | type[httpx.TransportError]


def ok() -> httpx.Response:
    return httpx.Response(201, json=STARTED)


def problem(status: int, **headers: str) -> httpx.Response:
    body = {"type": "about:blank", "title": "Title", "status": status, "detail": "What to do."}
    return httpx.Response(status, json=body, headers=headers)


class Scripted(httpx.MockTransport):
    """Answers step by step, and keeps what it was asked."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.asked: list[httpx.Request] = []
        left = iter(steps)

        def answer(request: httpx.Request) -> httpx.Response:
            self.asked.append(request)
            step = next(left)
            if isinstance(step, httpx.Response):
                return step
            raise step("scripted")

        super().__init__(answer)

    def sent(self, header: str) -> list[str | None]:
        return [request.headers.get(header) for request in self.asked]


class LosesAnswers(httpx.BaseTransport):
    """Lets the site do the first `n` writes, and breaks the connection before the answer arrives."""

    def __init__(self, site: httpx.BaseTransport, n: int) -> None:
        self._site, self._left = site, n

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._site.handle_request(request)
        if request.method != "GET" and self._left:
            self._left -= 1
            answer.read()
            raise httpx.ReadError("connection reset by peer")
        return answer


def client(transport: httpx.BaseTransport, **options: Any) -> Sonder:
    return Sonder("http://sonder.test", KEY, transport=transport, **{"retries": QUICK, **options})


@pytest.mark.django_db
@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_stores_one_interaction_and_one_outcome(
    agent: Agent, site: httpx.BaseTransport, connect: Callable[..., Sonder], lost: int
) -> None:
    started = connect(agent, transport=LosesAnswers(site, lost)).start_interaction(TASK)
    assert [row.pk for row in Interaction.objects.all()] == [started.id]
    said = connect(agent, transport=LosesAnswers(site, lost)).record_outcome(started.id, "failed")
    assert [row.pk for row in Outcome.objects.all()] == [said.id]


@pytest.mark.django_db
def test_who_gave_up_can_send_it_again_with_the_key_that_the_error_names(
    agent: Agent, site: httpx.BaseTransport, connect: Callable[..., Sonder]
) -> None:
    with pytest.raises(sonder.Unreachable) as caught:
        connect(agent, transport=LosesAnswers(site, 99)).start_interaction(TASK)
    again = connect(agent).start_interaction(TASK, idempotency_key=caught.value.idempotency_key)
    assert [row.pk for row in Interaction.objects.all()] == [again.id]


def passing() -> list[Step]:
    """Four attempts that fail for a while, and one that does not."""
    return [httpx.ConnectError, httpx.ReadTimeout, problem(502), problem(503, **{"Retry-After": "0"}), ok()]


def test_each_attempt_of_a_call_carries_one_key_and_one_request_id_and_the_next_call_others() -> None:
    script = Scripted([*passing(), ok()])
    with client(script) as one:
        one.start_interaction(TASK)
        one.start_interaction(TASK)
    for header in ("Idempotency-Key", "X-Request-ID"):
        first, later = script.sent(header)[:5], script.sent(header)[5]
        assert len(set(first)) == 1
        assert first[0]
        assert later not in (None, first[0])
    assert len({request.content for request in script.asked}) == 1


def test_the_awaiting_client_does_the_same() -> None:
    script = Scripted(passing())

    async def call() -> sonder.Started:
        async with AsyncSonder("http://sonder.test", KEY, transport=script, retries=QUICK) as one:
            return await one.start_interaction(TASK)

    assert str(asyncio.run(call()).id) == STARTED["id"]
    assert len(set(script.sent("Idempotency-Key"))) == 1
    assert len(script.asked) == 5


def test_a_read_is_tried_again_without_a_key() -> None:
    script = Scripted([httpx.ReadError, httpx.Response(200, json={"results": [], "next": None, "previous": None})])
    assert list(client(script).list_facts()) == []
    assert script.sent("Idempotency-Key") == [None, None]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 500])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    script = Scripted([problem(status)])
    with pytest.raises(sonder.Refused, match=rf"^{status} Title: What to do\.$"):
        client(script).start_interaction(TASK)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_it_gives_up_after_so_many_attempts(status: int) -> None:
    script = Scripted([problem(status)] * 3)
    with pytest.raises(sonder.Throttled if status == 429 else sonder.Unavailable):
        client(script, retries=Retries(attempts=3, first_pause=0)).start_interaction(TASK)
    assert len(script.asked) == 3
    with pytest.raises(sonder.Unreachable, match="after 2 attempts"):
        client(Scripted([httpx.ConnectError] * 2), retries=Retries(attempts=2, first_pause=0)).start_interaction(TASK)


def test_it_waits_as_long_as_the_server_asks_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    client(Scripted([problem(429, **{"Retry-After": "7"}), ok()]), retries=Retries()).start_interaction(TASK)
    assert pauses == [7]
    script = Scripted([problem(429, **{"Retry-After": "3600"})])
    with pytest.raises(sonder.Throttled) as caught:
        client(script, retries=Retries()).start_interaction(TASK)
    assert (caught.value.retry_after, len(script.asked), len(pauses)) == (3600, 1, 1)


def test_pauses_double_up_to_a_bound_and_differ_between_clients() -> None:
    patient = Retries(attempts=9, first_pause=1, longest_backoff=8)
    for attempt, whole in enumerate([1, 2, 4, 8, 8], start=1):
        drawn = {patient.pause(attempt) for _ in range(30)}
        assert all(pause is not None and whole / 2 <= pause <= whole for pause in drawn)
        assert len(drawn) > 1
    assert patient.pause(9) is None
    with pytest.raises(ValueError, match="attempts"):
        Retries(attempts=0)


@pytest.mark.parametrize("body", ["<html>", "[]", '{"id": 7}', '{"id": "x"}', "null"])
def test_an_answer_of_something_else_is_named_as_such(body: str) -> None:
    with pytest.raises(sonder.Unexpected, match="/api/v1/interactions/ answered what this client cannot read"):
        client(Scripted([httpx.Response(200, text=body)])).start_interaction(TASK)


def test_a_refusal_of_something_else_is_still_a_refusal() -> None:
    with pytest.raises(sonder.Unavailable, match=r"^502 Bad Gateway: The answer says nothing more\.$"):
        client(Scripted([httpx.Response(502, text="<html>")]), retries=Retries(attempts=1)).start_interaction(TASK)


def test_what_a_newer_server_adds_does_no_harm() -> None:
    newer = httpx.Response(201, json={**STARTED, "mood": "good"})
    assert client(Scripted([newer])).start_interaction(TASK).lessons == ()


class TestTheKey:
    def test_it_goes_to_no_other_server(self) -> None:
        page = {"results": [], "next": "https://evil.example.com/api/v1/facts/?cursor=abc", "previous": None}
        script = Scripted([httpx.Response(200, json=page), httpx.Response(200, json={**page, "next": None})])
        assert list(client(script).list_facts()) == []
        assert [request.url.host for request in script.asked] == ["sonder.test"] * 2
        assert script.asked[1].url.params["cursor"] == "abc"
        moved = Scripted([httpx.Response(301, headers={"Location": "https://evil.example.com/"})])
        with pytest.raises(sonder.Unexpected, match="redirects to"):
            client(moved).start_interaction(TASK)
        assert len(moved.asked) == 1

    def test_it_is_in_no_repr_no_log_and_no_error(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        one = client(Scripted([problem(401), *[httpx.ConnectError] * 5]))
        told = [repr(one), str(one), repr(vars(one))]
        for _ in range(2):
            with pytest.raises(sonder.SonderError) as caught:
                one.start_interaction(TASK)
            told += [str(caught.value), repr(caught.value), repr(vars(caught.value)), repr(caught.value.__cause__)]
        assert [text for text in [*told, caplog.text] if "s" * 20 in text] == []

    @pytest.mark.parametrize(("url", "key"), [
        ("ftp://host", KEY), ("host", KEY), ("", KEY), ("http://me:secretword@host", KEY), ("http://", KEY),
        ("http://host", ""), ("http://host", "secretword\n"), ("http://host", "secret word"), ("http://host", "ségret"),
    ])  # fmt: skip
    def test_what_is_no_address_or_no_key_is_refused_and_not_repeated(self, url: str, key: str) -> None:
        with pytest.raises(ValueError, match=r"^(url|key): ") as caught:
            Sonder(url, key)
        assert "secret" not in str(caught.value)


def test_it_needs_nothing_of_the_server() -> None:
    look = "import sonder_client, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) & {"django", "rest_framework", "memory", "sonder_site", "pydantic", "mcp"} == set()
