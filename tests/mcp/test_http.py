"""MCP over Streamable HTTP on a real port: the SDK's own client, and whoever must not come in."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone
from mcp import Client, types

from memory.mcp.calls import BROKEN
from memory.models import ApiKey, Interaction, Lesson, Outcome
from memory.services import interaction as interactions
from memory.services.credit import sweep
from tests.conftest import Agent, make_agent
from tests.http.calls import LESSONS, nothing_changes
from tests.http.calls import refused as refused_over_http
from tests.mcp.clients import answer, over_http, refused, served, talk

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TASK = "pass a timeout to the requests.get call of the worker"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "MCP-Protocol-Version": "2025-06-18"}


@pytest.fixture
def address() -> Iterator[str]:
    with served() as found:
        yield found


def post(address: str, token: str, body: object, **headers: str) -> httpx.Response:
    """A request that the SDK's client would not send."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    own = HEADERS | {"Authorization": f"Bearer {token}"} | headers
    return httpx.post(f"{address}/mcp", content=sent, headers=own, timeout=60)


def starting(task: str) -> dict[str, Any]:
    return CALL | {"params": {"name": "start_interaction", "arguments": {"task": task}}}


def test_the_whole_loop_over_http_in_both_kinds_of_conversation(
    agent: Agent, rival: Agent, lesson: Callable[..., Lesson], address: str
) -> None:
    stored = lesson(TEXT)

    async def loop(client: Client) -> str:
        begun = answer(await client.call_tool("start_interaction", {"task": TASK}))
        assert TEXT in begun["context"]
        work = str(begun["interaction_id"])
        answer(await client.call_tool("finish_interaction", {"interaction_id": work, "response": "done"}))
        said = answer(await client.call_tool("record_outcome", {"interaction_id": work, "signal": "failed"}))
        assert said["source"] == "caller"
        return work

    async def trespass(client: Client, work: str) -> types.CallToolResult:
        return await client.call_tool("record_outcome", {"interaction_id": work, "signal": "accepted"})

    works = [talk(address, agent.token, loop, mode) for mode in ("auto", "legacy")]
    for work in works:
        refused(talk(address, rival.token, lambda client, work=work: trespass(client, work)), 404)
    sweep()
    evidence = agent.client.get(f"{LESSONS}{stored.pk}/evidence/").json()
    assert sorted(row["interaction"] for row in evidence["rows"]) == sorted(works)
    assert evidence["losses"] == 2

    async def crowd() -> list[types.CallToolResult]:
        """Conversations of two accounts at once."""

        async def one(who: Agent, n: int) -> types.CallToolResult:
            async with over_http(address, who.token) as client:
                return await client.call_tool("start_interaction", {"task": f"{who.account.slug} {n}"})

        return await asyncio.gather(*(one(who, n) for n in range(4) for who in (agent, rival)))

    begun = [answer(result)["interaction_id"] for result in asyncio.run(crowd())]
    rows = Interaction.objects.filter(pk__in=begun).values_list("task", "account__slug")
    assert sorted(rows) == sorted((f"{slug} {n}", slug) for slug in ("acme", "rival") for n in range(4))


def test_who_has_no_live_key_does_not_come_in(agent: Agent, account: Any, address: str) -> None:
    revoked, expired = make_agent(account, "caller", ["loop"]), make_agent(account, "caller", ["loop"])
    past = timezone.now() - timedelta(seconds=1)
    ApiKey.objects.filter(pk=revoked.key.pk).update(revoked_at=past)
    ApiKey.objects.filter(pk=expired.key.pk).update(expires_at=past)
    headers = [{"Authorization": value} for value in (
        "", "Bearer", "Bearer secret", f"Basic {agent.token}", f"Bearer {agent.token}x", f"Bearer {agent.token[:-1]}",
        f"Bearer {revoked.token}", f"Bearer {expired.token}",
    )]  # fmt: skip
    with nothing_changes():
        for wrong in headers:
            for version in ("2025-06-18", "2026-07-28"):
                found = post(address, "", starting(TASK), **wrong, **{"MCP-Protocol-Version": version})
                assert "Ask an operator" in found.text or "Send" in found.text
                assert found.headers["WWW-Authenticate"].startswith('Bearer realm="Sonder"')
                refused_over_http(found, 401)
        in_the_address = httpx.post(f"{address}/mcp?key={agent.token}", json=starting(TASK), headers=HEADERS)
        refused_over_http(in_the_address, 401)
    let_in = post(address, agent.token, starting(TASK), **{"X-Request-ID": "mine-1234"})
    assert let_in.json()["result"]["isError"] is False
    assert let_in.headers["X-Request-ID"] == "mine-1234"


def test_a_fault_is_logged_with_the_request_id_that_the_answer_has(
    agent: Agent, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(interactions, "start", break_down)
    found = post(address, agent.token, starting(TASK), **{"X-Request-ID": "not one!"})
    assert found.json()["error"]["message"] == BROKEN
    (line,) = (dict(record.msg) for record in caplog.records if record.name == "memory.mcp.calls")
    assert (line["request_id"], line["key"]) == (found.headers["X-Request-ID"], agent.key.prefix)
    assert len(line["request_id"]) == 36


def test_pages_of_others_and_other_names_do_not_come_in(agent: Agent, address: str, settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://console.example.com"]
    port = address.rpartition(":")[2]
    with nothing_changes():
        for name in ("evil.example.com", f"evil.example.com:{port}", "127.0.0.1.evil.example.com"):
            refused_over_http(post(address, agent.token, starting(TASK), Host=name), 421)
        for origin in (
            "https://evil.example.com",
            "null",
            f"http://127.0.0.1.evil.example.com:{port}",
            "http://localhost",
        ):
            refused_over_http(post(address, agent.token, starting(TASK), Origin=origin), 403)
        settings.SECURE_SSL_REDIRECT = True
        refused_over_http(post(address, agent.token, starting(TASK)), 403)
        settings.SECURE_SSL_REDIRECT = False
    for origin in (address, "https://console.example.com"):
        assert post(address, agent.token, starting(TASK), Origin=origin).status_code == 200
    assert post(address, agent.token, starting(TASK), Host=f"localhost:{port}").status_code == 200


def test_what_is_no_call_is_refused_and_stores_nothing(agent: Agent, address: str) -> None:
    half = json.dumps(starting("half \ud83d")).encode()
    with nothing_changes():
        for method in ("GET", "DELETE", "PUT"):
            found = httpx.request(
                method, f"{address}/mcp", headers=HEADERS | {"Authorization": f"Bearer {agent.token}"}
            )
            refused_over_http(found, 405)
            assert found.headers["Allow"] == "POST"
        for body in (half, b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, json.dumps([starting(TASK)] * 2).encode()):
            for version in ("2025-06-18", "2026-07-28"):
                found = post(address, agent.token, body, **{"MCP-Protocol-Version": version})
                assert (found.status_code, "error" in found.json()) == (400, True), (body[:40], version)
        assert post(address, agent.token, starting("x" * 1_000_000)).status_code == 413
        assert post(address, agent.token, starting(TASK), **{"Content-Type": "text/plain"}).status_code == 400
        nul = post(address, agent.token, starting("a\0b")).json()["result"]
        assert (nul["isError"], nul["structuredContent"]["errors"].keys()) == (True, {"task"})
    assert httpx.get(f"{address}/healthz").status_code == 200, "the site is there beside it"
    assert not Outcome.objects.exists()
