"""`manage.py mcp` as a host starts it: a program that speaks MCP on its standard input and output, and nothing else."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from mcp import Client, StdioServerParameters

from memory.models import ApiKey, Interaction
from tests.conftest import Agent
from tests.http.calls import nothing_changes
from tests.mcp.clients import answer, refused, shown_hosts
from tests.system.stores import ROOT

committed = pytest.mark.django_db(transaction=True)

TASK = "pass a timeout to the requests.get call of the worker"
PATIENCE_SECONDS = 120


def environment(var: Path, **more: str) -> dict[str, str]:
    """The tests' own settings and database, and a broker in `var` that nobody listens to."""
    at = connection.get_connection_params()
    if str(at.get("host", "")).startswith("/"):
        url = f"postgres:///{at['host']}/{at['dbname']}?user={at['user']}" + (
            f"&port={at['port']}" if at.get("port") else ""
        )
    else:
        url = f"postgres://{at['user']}:{at['password']}@{at['host']}:{at['port']}/{at['dbname']}"
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": url,
        "SONDER_VAR": str(var),
        **more,
    }


def converse(var: Path, key: Path, lines: list[str], answers: int) -> tuple[list[dict[str, Any]], str]:
    """So many answers to these lines, and what was logged. Standard input ends after the answers, as a host ends it."""
    command = [sys.executable, "manage.py", "mcp", "--key-file", str(key)]
    log = var / "log"
    with log.open("w") as errors, subprocess.Popen(
        command, cwd=ROOT, env=environment(var), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    ) as process:  # fmt: skip
        too_late = threading.Timer(PATIENCE_SECONDS, process.kill)
        too_late.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for _ in range(answers)]
        process.stdin.close()
        rest = process.stdout.read()
        too_late.cancel()
    assert (process.returncode, rest) == (0, "")
    return found, log.read_text()


@committed
def test_the_whole_loop_over_stdio_until_the_key_is_revoked(agent: Agent, tmp_path: Path) -> None:
    """Configured as the README says."""
    _, shown = shown_hosts("README.md", "http://unused", agent.token)
    host = StdioServerParameters(
        command=shown["command"], args=shown["args"], cwd=tmp_path, env=environment(tmp_path, **shown["env"])
    )

    async def conversation() -> str:
        async with Client(host, read_timeout_seconds=PATIENCE_SECONDS) as client:
            begun = answer(await client.call_tool("start_interaction", {"task": TASK}))
            work = {"interaction_id": begun["interaction_id"]}
            answer(await client.call_tool("finish_interaction", {**work, "response": "done \N{SNOWMAN}"}))
            said = answer(await client.call_tool("record_outcome", {**work, "signal": "tests_passed"}))
            assert said["source"] == "caller"
            refused(await client.call_tool("start_interaction", {"task": "a\0b"}), 400, "task")
            await asyncio.to_thread(revoke)
            refused(await client.call_tool("record_outcome", {**work, "signal": "failed"}), 401)
            return str(begun["interaction_id"])

    def revoke() -> None:
        ApiKey.objects.filter(pk=agent.key.pk).update(revoked_at=timezone.now())
        connection.close()

    row = Interaction.objects.get(pk=asyncio.run(conversation()))
    assert (row.task, row.response) == (TASK, "done \N{SNOWMAN}")
    assert [outcome.signal for outcome in row.outcome_set.all()] == ["tests_passed"]


@committed
def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_served(agent: Agent, tmp_path: Path) -> None:
    """The SDK's client cannot send these; other hosts can, and would wait for ever."""
    key = tmp_path / "key"
    key.write_text(f"{agent.token}\n")
    hello: dict[str, Any] = {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }  # fmt: skip
    start: dict[str, Any] = {"name": "start_interaction", "arguments": {"task": "half \ud83d"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": start}),
        "{",
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}),
    ]
    with nothing_changes():
        found, log = converse(tmp_path, key, lines, answers=4)
    answers = {message["id"]: message for message in found}
    assert sorted(answers, key=str) == [1, 2, 3, None]
    for refusal in (answers[2], answers[None]):
        assert refusal["error"]["code"] == -32700
        assert "surrogate pair" in refusal["error"]["message"]
    assert len(answers[3]["result"]["tools"]) == 6
    assert agent.token not in json.dumps(found) + log


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        ([], "", "There is no key. Put one into the environment variable MCP_API_KEY"),
        ([], "sonder_aaaaaaaaaaaa_" + "a" * 43, "The API key is unknown, revoked or expired."),
        (["--key-file", "/nowhere/key"], "", "/nowhere/key cannot be read"),
    ],
)
def test_without_a_live_key_it_says_what_to_do_and_ends(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], token: str, said: str
) -> None:
    monkeypatch.setenv("MCP_API_KEY", token)
    with pytest.raises(CommandError, match=said):
        call_command("mcp", *arguments)
