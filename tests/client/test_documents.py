"""What the README and the pages about MCP and the client show is tried as it stands there, but for address and key."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types

from memory.models import Interaction, Lesson, Outcome
from tests.conftest import Agent
from tests.markdown import fences
from tests.mcp.clients import PATIENCE_SECONDS, answer, over_http, served
from tests.mcp.test_stdio import environment
from tests.system.stores import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Set `CONN_HEALTH_CHECKS` so that the worker survives a lost database connection instead of dying of it."


def blocks(language: str, *pages: str) -> list[str]:
    found = [fences((ROOT / page).read_text(encoding="utf-8"), language) for page in pages]
    assert all(found)
    return [block for page in found for block in page]


def hosts(address: str, token: str) -> list[dict[str, Any]]:
    """The entries of the configurations that are shown, for this server and this key."""
    shown = [json.loads(block) for block in blocks("json", "README.md", "docs/mcp.md")]
    entries = [one["mcpServers"]["sonder"] for one in shown]
    text = json.dumps(entries).replace("http://127.0.0.1:8000", address).replace("sonder_...", token)
    text = text.replace("/path/to/sonder/.venv/bin/python", sys.executable).replace("/path/to/sonder", str(ROOT))
    return list(json.loads(text))


def test_a_host_with_the_configuration_that_is_shown_finds_the_tools(agent: Agent, tmp_path: Path) -> None:
    async def begin(client: Client) -> types.CallToolResult:
        return await client.call_tool("start_interaction", {"task": "survive"})

    async def connect(host: dict[str, Any]) -> types.CallToolResult:
        if "url" in host:
            address, path = host["url"].removesuffix("/mcp"), "/mcp"
            assert (host["type"], host["url"]) == ("http", address + path)
            async with over_http(address, None, **host["headers"]) as client:
                return await begin(client)
        own = environment(tmp_path, **host["env"])
        program = StdioServerParameters(command=host["command"], args=host["args"], env=own, cwd=tmp_path)
        async with Client(program, read_timeout_seconds=PATIENCE_SECONDS) as client:
            return await begin(client)

    with served() as address:
        shown = hosts(address, agent.token)
        tried = list({json.dumps(host, sort_keys=True): host for host in shown}.values())
        assert (len(shown), len(tried)) == (4, 2), "the README and the page say the same"
        for host in tried:
            answer(asyncio.run(connect(host)))
    assert Interaction.objects.count() == 2


@pytest.mark.parametrize("page", ["README.md", "docs/client.md"])
def test_the_lines_of_python_run(agent: Agent, lesson: Callable[..., Lesson], page: str) -> None:
    lesson(TEXT)
    read: list[str] = []

    def work(task: str, *, context: str) -> str:
        read.append(context)
        return f"done: {task}"

    program = blocks("python", page)[0]
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) <= 6
    with served() as address:
        here = program.replace("http://127.0.0.1:8000", address)
        exec(compile(here, page, "exec"), {"key": agent.token, "agent": work})
    assert TEXT in read[0]
    outcome = Outcome.objects.get()
    assert (outcome.signal, outcome.source) == ("tests_passed", "caller")
    assert outcome.interaction.response.startswith("done: Make the worker survive")
