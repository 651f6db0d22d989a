"""MCP over standard input and output, for a host that starts this program for its agent."""

import json
from typing import Any, Final

from anyio import EndOfStream
from django.db import close_old_connections
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from memory.mcp.rights import authenticate
from memory.mcp.server import Context, build
from memory.models import ApiKey

UNREADABLE: Final = "This is no JSON-RPC message in Unicode. Half of a surrogate pair in a text is a usual cause."


async def serve(token: str) -> None:
    """Serves until standard input ends. The key is looked up at each call: a revoked one ends in the middle."""

    def key_of(_: Context) -> ApiKey:
        close_old_connections()  # the database may have been restarted since the last call
        return authenticate({"Authorization": f"Bearer {token}"})

    server = build(key_of)
    async with stdio_server() as (read, write):
        await server.run(Answered(read, write), write, server.create_initialization_options())


class Answered:
    """Messages, with each line that is none answered on the way: the SDK drops it, and its sender would wait."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read, self._write = read, write

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        while isinstance(item := await self._read.receive(), ValidationError):
            error = types.ErrorData(code=types.PARSE_ERROR, message=UNREADABLE)
            answer = types.JSONRPCError(jsonrpc="2.0", id=_id_of(item), error=error)
            await self._write.send(SessionMessage(answer))
        message: SessionMessage | Exception = item
        return message

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> "Answered":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "Answered":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _id_of(refusal: ValidationError) -> str | int | None:
    """The id of a request that the SDK's parser refused and Python's reads; None if there is none to be seen."""
    line = refusal.errors(include_url=False)[0]["input"]
    try:
        message = json.loads(line)
    except (ValueError, RecursionError, TypeError):
        return None
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
