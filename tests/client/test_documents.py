"""What the README and the pages about MCP and the client show is tried as it stands there, but for address and key."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp import types

from memory.models import Lesson, Outcome
from tests.conftest import Agent
from tests.markdown import fences
from tests.mcp.clients import answer, over_http, served, shown_hosts
from tests.system.stores import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Set `CONN_HEALTH_CHECKS` so that the worker survives a lost database connection instead of dying of it."


def test_what_is_shown_works_as_it_stands_there(agent: Agent, lesson: Callable[..., Lesson]) -> None:
    """The host's entry for HTTP (those for stdio are tried where `manage.py mcp` is), and the lines of Python."""
    lesson(TEXT)
    with served() as address:
        hosts = [shown_hosts(page, address, agent.token) for page in ("README.md", "docs/mcp.md")]
        assert hosts[0] == hosts[1], "the README and the page say the same"
        assert TEXT in answer(asyncio.run(begin(hosts[0][0])))["context"]
        for page in ("README.md", "docs/client.md"):
            run_python(page, address, agent.token)


async def begin(host: dict[str, Any]) -> types.CallToolResult:
    assert host["type"] == "http"
    async with over_http(host["url"].removesuffix("/mcp"), None, **host["headers"]) as client:
        return await client.call_tool("start_interaction", {"task": "Make the worker survive a lost connection"})


def run_python(page: str, address: str, key: str) -> None:
    read: list[str] = []

    def work(task: str, *, context: str) -> str:
        read.append(context)
        return f"done: {task}"

    program = fences((ROOT / page).read_text(encoding="utf-8"), "python")[0]
    assert len([line for line in program.splitlines() if line.strip()]) <= 6
    exec(compile(program.replace("http://127.0.0.1:8000", address), page, "exec"), {"key": key, "agent": work})
    assert TEXT in read[0]
    outcome = Outcome.objects.latest("id")
    assert (outcome.signal, outcome.source) == ("tests_passed", "caller")
    assert outcome.interaction.response.startswith("done: Make the worker survive")
