"""A plain agent: any OpenAI-compatible model writes a file, a command judges it, and Sonder learns from the verdict.

    export SONDER=http://127.0.0.1:8000 AGENT_KEY=sonder_...
    export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=none
    python -m examples.openai_agent --model llama3 --project api \
        "Write slug.py with a function slug(text)" slug.py python -m pytest -q test_slug.py
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from sonder_client import Sonder, Started

SYSTEM = "You write one file. Answer with its whole content and nothing else, without a code fence."


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says about an answer."""

    passed: bool
    said: str  # for the model, which may try again, and for the record


def solve(
    task: str, *, sonder: Sonder, llm: OpenAI, model: str, judge: Callable[[str], Verdict], project: str | None = None,
    tries: int = 3,
) -> Verdict:  # fmt: skip
    """One piece of work, tried a few times. What the judge says of the last try is reported, whatever it is."""
    with sonder.interaction(task, project=project, model=model) as it:
        messages = prompt(task, it.started)
        tokens_in = tokens_out = 0
        for _ in range(tries):
            completion = llm.chat.completions.create(model=model, messages=messages)
            answer = completion.choices[0].message.content or ""
            if completion.usage is not None:
                tokens_in += completion.usage.prompt_tokens
                tokens_out += completion.usage.completion_tokens
            verdict = judge(answer)
            if verdict.passed:
                break
            messages += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"That did not pass:\n{verdict.said}"},
            ]
        it.respond(answer, tokens_in=tokens_in or None, tokens_out=tokens_out or None)
        it.outcome("tests_passed" if verdict.passed else "failed", detail=verdict.said)
    return verdict


def prompt(task: str, started: Started) -> list[ChatCompletionMessageParam]:
    """What people want are instructions; what earlier work taught is fenced as notes, and stands beside the task."""
    wishes = [f"- {preference.text}" for preference in started.preferences]
    facts = [f"- {fact.text}" for fact in started.facts]
    system = "\n".join([SYSTEM, *(["What people want:", *wishes] if wishes else [])])
    notes = "\n".join([*(["Facts:", *facts] if facts else []), *([started.context] if started.context else [])])
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": f"{notes}\n\n{task}" if notes else task},
    ]


def by_command(file: Path, command: list[str]) -> Callable[[str], Verdict]:
    """Writes the answer into a file and runs a command: its exit status is the verdict."""

    def judge(answer: str) -> Verdict:
        file.write_text(answer, encoding="utf-8")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Verdict(passed=done.returncode == 0, said=(done.stdout + done.stderr)[-4000:])

    return judge


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--project")
    parser.add_argument("task")
    parser.add_argument("file", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="judges the file by its exit status")
    given = parser.parse_args()
    with Sonder(os.environ["SONDER"], os.environ["AGENT_KEY"]) as sonder:
        judge = by_command(given.file, given.command)
        verdict = solve(given.task, sonder=sonder, llm=OpenAI(), model=given.model, judge=judge, project=given.project)
    sys.stdout.write(verdict.said)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
