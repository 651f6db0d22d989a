"""A tool call, from the key to the answer."""

import json
from collections.abc import Mapping
from typing import Final

import structlog
from django.db import transaction
from mcp import MCPError, types

from memory.errors import NotFound
from memory.mcp.arguments import Arguments, Write
from memory.mcp.rights import admit, refusal
from memory.mcp.tools import TOOLS, Tool
from memory.models import ApiKey
from memory.services.caller import Caller
from memory.services.idempotency import Answer, body_digest, once
from memory.services.keys import caller_of

log = structlog.get_logger(__name__)
BROKEN: Final = "Something went wrong here; nothing was saved. The log has the reason."
NAMES: Final = {"Idempotency-Key": "idempotency_key"}  # what the HTTP API calls an argument


def call(key: ApiKey, name: str, given: Mapping[str, object]) -> types.CallToolResult:
    """Uses a tool in the key's account. A refusal is an answer too: it says what to correct, and nothing was stored.

    Raises MCPError for a fault of the product, without its details.
    """
    try:
        return _call(key, name, given)
    except Exception as error:
        # The SDK would send the text of whatever is raised to a client of an older protocol.
        answer = refused(error)
        if answer is None:
            log.exception("tool_failed", tool=name)
            raise MCPError(types.INTERNAL_ERROR, BROKEN) from error
        return answer


def _call(key: ApiKey, name: str, given: Mapping[str, object]) -> types.CallToolResult:
    tool = TOOLS.get(name)
    if tool is None:
        raise NotFound(f"There is no such tool. There are {', '.join(TOOLS)}.")
    admit(key, tool.scope)
    answer = _answer(tool, caller_of(key), tool.arguments.read(given))
    content = types.TextContent(type="text", text=json.dumps(answer.body, ensure_ascii=False))
    meta = {"idempotency-replayed": True} if answer.replayed else None
    return types.CallToolResult(content=[content], structured_content=dict(answer.body), _meta=meta)


def _answer(tool: Tool, caller: Caller, arguments: Arguments) -> Answer:
    """Runs the tool in one transaction, and once for each idempotency key. Another judge's call is another call."""
    prepared = tool.prepare(caller, arguments)

    def act() -> Answer:
        return Answer(status=200, body=prepared().model_dump(mode="json"))

    if not isinstance(arguments, Write) or arguments.idempotency_key is None:
        with transaction.atomic():
            return act()
    sent = arguments.model_dump(mode="json", exclude={"idempotency_key"})
    digest = body_digest("MCP", tool.name, [caller.source, sent])
    return once(caller.account_id, arguments.idempotency_key, digest, act)


def refused(error: Exception) -> types.CallToolResult | None:
    """What the HTTP API says to the same error, as a tool's; None for a fault of the product."""
    response = refusal(error)
    if response is None:
        return None
    problem = json.loads(response.content)
    if "errors" in problem:
        problem["errors"] = {NAMES.get(name, name): said for name, said in problem["errors"].items()}
    fields = [f"{name}: {' '.join(said)}" for name, said in problem.get("errors", {}).items()]
    text = "\n".join(dict.fromkeys([problem["detail"], *fields]))  # where one field is all, the sentence is its line
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], structured_content=problem, is_error=True)
