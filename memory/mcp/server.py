"""The protocol: what the tools are, and who may use them."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from mcp import types
from mcp.server import Server, ServerRequestContext
from rest_framework.exceptions import APIException

from memory.mcp.calls import call, refused
from memory.mcp.tools import INSTRUCTIONS, TOOLS, Tool
from memory.models import ApiKey

Context = ServerRequestContext[Any, Any]


def build(key_of: Callable[[Context], ApiKey]) -> Server[Any]:
    """A server without state. `key_of` finds the key of each call anew, so that a revoked one ends in the middle."""

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(tool) for tool in TOOLS.values()])

    def use(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            key = key_of(context)
        except APIException as error:
            answer = refused(error)
            assert answer is not None, "the site has words for each of its refusals"
            return answer
        return call(key, params.name, params.arguments or {})

    return Server(
        "sonder",
        title="Sonder",
        version=str(settings.SPECTACULAR_SETTINGS["VERSION"]),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=sync_to_async(use),
    )


def described(tool: Tool) -> types.Tool:
    """The tool as an agent sees it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.described(),
        output_schema=tool.answer.described(),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads_only,
            destructive_hint=False,
            idempotent_hint=tool.repeatable,
            open_world_hint=False,
        ),
    )
