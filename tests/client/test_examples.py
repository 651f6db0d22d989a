"""The examples do what they say, against the real site and a model that speaks OpenAI's protocol."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from examples import coding_agent_hook as hook
from examples.langgraph_nodes import State, remembering
from examples.openai_agent import Verdict, solve
from memory.models import Interaction, Lesson, Outcome
from sonder_client import Sonder
from tests.conftest import Agent
from tests.distillers.server import chat_server, completion
from tests.mcp.clients import served
from tests.system.stores import ROOT

TEXT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TASK = "pass a timeout to the requests.get call of the worker"
WISH = "I always prefer tabs over spaces in this code base."
Connect = Callable[..., Sonder]


@pytest.mark.django_db
def test_the_plain_agent_tries_again_and_reports_what_the_judge_says_last(
    machine: Agent, connect: Connect, lesson: Callable[..., Lesson]
) -> None:
    lesson(TEXT)
    sonder = connect(machine)
    sonder.start_interaction(WISH)
    sonder.record_fact("api", "The worker runs on two machines.")
    tried: list[str] = []

    def judge(answer: str) -> Verdict:
        tried.append(answer)
        return Verdict(passed=answer == "good", said=f"{answer}: 1 test")

    with chat_server() as server, openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as llm:
        server.before = lambda request: (
            completion("good" if len(request["messages"]) > 2 else "bad")
            | {"usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}
        )
        verdict = solve(TASK, sonder=sonder, llm=llm, model="m", judge=judge, project="api")
        first, second = (request["messages"] for request in server.requests)
    assert (verdict.passed, tried) == (True, ["bad", "good"])
    assert WISH in first[0]["content"]
    assert all(part in first[1]["content"] for part in (TEXT, "The worker runs on two machines.", TASK))
    assert second[3]["content"] == "That did not pass:\nbad: 1 test"
    work = Interaction.objects.get(task=TASK)
    assert (work.response, work.tokens_in, work.tokens_out, work.model) == ("good", 20, 4, "m")
    outcome = Outcome.objects.get(interaction=work)
    assert (outcome.signal, outcome.source, outcome.detail) == ("tests_passed", "machine", "good: 1 test")

    with chat_server() as server, openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as llm:
        server.answer = completion("bad")
        assert not solve("hopeless", sonder=sonder, llm=llm, model="m", judge=judge).passed
        assert len(server.requests) == 3
    assert Outcome.objects.get(interaction__task="hopeless").signal == "failed"


@pytest.mark.django_db
def test_the_graph_recalls_before_the_work_and_reports_after_the_judge(
    agent: Agent, connect: Connect, lesson: Callable[..., Lesson]
) -> None:
    lesson(TEXT)
    read: list[str] = []

    def work(state: State) -> State:
        read.append(state["context"])
        return {"answer": f"done: {state['task']}"}

    def judge(state: State) -> State:
        return {"signal": "accepted", "detail": "looks right"} if "worker" in state["answer"] else {}

    graph = remembering(connect(agent), work=work, judge=judge).compile()
    ended = graph.invoke({"task": TASK, "project": "api", "session": "talk"})
    assert TEXT in read[0]
    row = Interaction.objects.get(pk=ended["interaction"])
    assert (row.response, row.project.slug, row.session.external_id) == (f"done: {TASK}", "api", "talk")
    assert [(one.signal, one.detail) for one in row.outcome_set.all()] == [("accepted", "looks right")]
    graph.invoke({"task": "something that nobody judges"})
    assert Outcome.objects.count() == 1


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def prompted(session: str = "../talk", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": TASK, "cwd": "/src/My API!", **more}


def stopped(session: str = "../talk", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": "Stop", "session_id": session, **more}


@pytest.mark.django_db
def test_the_hook_hands_lessons_to_a_prompt_and_logs_the_session(
    machine: Agent, connect: Connect, lesson: Callable[..., Lesson], state: Path
) -> None:
    lesson(TEXT)
    sonder = connect(machine)
    sonder.start_interaction(WISH)
    told = hook.on_prompt(sonder, prompted())
    assert TEXT in told
    assert WISH in told
    row = Interaction.objects.get(task=TASK)
    assert (row.project.slug, row.session.external_id) == ("my-api", "../talk")
    assert [path.parent.name for path in state.rglob("*") if path.is_file()] == ["sonder-hook"], (
        "whatever its name says"
    )

    transcript = state / "transcript.jsonl"
    entries = [
        {"type": "user", "message": {"role": "user", "content": TASK}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "It works now."}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "bash"}]}},
    ]
    transcript.write_text("\n".join(map(json.dumps, entries)))
    check = f"{sys.executable} -c 'print(7); raise SystemExit(1)'"
    hook.on_stop(sonder, stopped(transcript_path=str(transcript), cwd=str(state)), check)
    row.refresh_from_db()
    assert row.response == "It works now."
    assert [(one.signal, one.source, one.detail) for one in row.outcome_set.all()] == [("failed", "machine", "7")]
    hook.on_stop(sonder, stopped(), check)
    assert Outcome.objects.count() == 1, "there is nothing under way any more"


@pytest.mark.django_db
def test_without_a_check_the_hook_claims_nothing(machine: Agent, connect: Connect, state: Path) -> None:
    hook.on_prompt(connect(machine), prompted())
    hook.on_stop(connect(machine), stopped(last_assistant_message="done"), None)
    assert Interaction.objects.get().response == "done"
    assert not Outcome.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_hook_is_a_program_that_reads_an_event(machine: Agent, lesson: Callable[..., Lesson], state: Path) -> None:
    lesson(TEXT)

    def run(event: dict[str, Any], address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, str(ROOT / "examples" / "coding_agent_hook.py"), *arguments]
        own = {**os.environ, "SONDER": address, "AGENT_KEY": machine.token}
        return subprocess.run(
            program, cwd=state, env=own, input=json.dumps(event), capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip

    with served() as address:
        begun = run(prompted(), address)
        assert (begun.returncode, begun.stderr) == (0, "")
        assert TEXT in begun.stdout
        ended = run(stopped(last_assistant_message="done", cwd=str(state)), address, "--check", "true")
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert Outcome.objects.get().signal == "tests_passed"
    away = run(prompted(), address)
    assert (away.returncode, away.stdout) == (1, "")
    assert "The hook remembers nothing this time. Unreachable" in away.stderr
    assert machine.token not in away.stderr


@pytest.mark.parametrize(
    ("folder", "slug"), [("/a/My API!", "my-api"), ("/", None), ("/a/é", None), ("/a/" + "x" * 99, "x" * 63)]
)
def test_a_folder_becomes_a_slug_that_the_server_takes(folder: str, slug: str | None) -> None:
    assert hook.project_of(folder) == slug


def test_the_hook_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("SONDER", raising=False)
    monkeypatch.setattr(sys, "argv", ["hook"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(prompted())))
    assert hook.main() == 1
    assert "KeyError: 'SONDER'" in capsys.readouterr().err
