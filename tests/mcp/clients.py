"""The SDK's own client against this server: in this process, over HTTP, and over stdio; and the site on a real port."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx2
import uvicorn
from asgiref.sync import async_to_sync
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from memory.mcp.rights import authenticate
from memory.mcp.server import build
from sonder_site.asgi import compose
from tests.markdown import fences
from tests.system.stores import ROOT, wait_until

T = TypeVar("T")
PATIENCE_SECONDS = 60


@contextmanager
def served() -> Iterator[str]:
    """The whole site on a port of its own; yields its address. The test must commit what it writes."""
    config = uvicorn.Config(compose(), host="127.0.0.1", port=0, lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


@asynccontextmanager
async def over_http(address: str, token: str | None, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A connected client. `mode` is the SDK's: `legacy` speaks the protocol as it was with sessions."""
    sent = ({"Authorization": f"Bearer {token}"} if token is not None else {}) | headers
    async with (
        httpx2.AsyncClient(headers=sent, timeout=PATIENCE_SECONDS) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def shown_hosts(page: str, address: str, token: str) -> list[dict[str, Any]]:
    """The configurations that a page shows for a host, HTTP first, for this server, this checkout and this key."""
    shown = fences((ROOT / page).read_text(encoding="utf-8"), "json")
    text = json.dumps([json.loads(block)["mcpServers"]["sonder"] for block in shown])
    for placeholder, value in {
        "http://127.0.0.1:8000": address,
        "sonder_...": token,
        "/path/to/sonder/.venv/bin/python": sys.executable,
        "/path/to/sonder": str(ROOT),
    }.items():
        assert placeholder in text
        text = text.replace(placeholder, value)
    return list(json.loads(text))


def talk(address: str, token: str | None, say: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """What `say` returns after a conversation over HTTP."""

    async def conversation() -> T:
        async with over_http(address, token, mode) as client:
            return await say(client)

    return asyncio.run(conversation())


def use(token: str, name: str, mode: str = "auto", **arguments: Any) -> types.CallToolResult:
    """One tool call through the protocol, in this process and in the test's own transaction."""

    async def conversation() -> types.CallToolResult:
        server = build(lambda _: authenticate({"Authorization": f"Bearer {token}"}))
        async with Client(server, mode=mode) as client:
            return await client.call_tool(name, arguments)

    return async_to_sync(conversation)()


def answer(result: types.CallToolResult) -> dict[str, Any]:
    """The structured content of a call that went well."""
    assert not result.is_error, result.content
    return dict(result.structured_content)


def refused(result: types.CallToolResult, status: int, *names: str) -> str:
    """The text of a refusal, which has this status and names exactly these arguments."""
    assert result.is_error
    assert result.structured_content["status"] == status, result.structured_content
    assert sorted(result.structured_content.get("errors", {})) == sorted(names)
    (content,) = result.content
    assert result.structured_content["detail"] in content.text
    assert all(f"{name}: " in content.text for name in names)
    return str(content.text)
