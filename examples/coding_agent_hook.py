"""A hook that lets a coding agent remember: it hands lessons to each prompt and logs what came of it.

Coding agents such as Claude Code run hooks with a JSON document on standard input. This one understands two events:

* `UserPromptSubmit` starts an interaction and writes the lessons to standard output, which the agent reads as context;
* `Stop` hands in the agent's last message, and with `--check COMMAND` runs the tests and reports whether they passed.

In the agent's settings, with SONDER (the address) and AGENT_KEY in its environment:

    {"hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "python .../coding_agent_hook.py"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "python .../coding_agent_hook.py --check 'make test'"}]}]}}

A key of the source `machine` is right here: it is a program that judges. A server that is away costs the agent a few
seconds and a line on standard error, and never its work.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a file, from wherever the agent works

from sonder_client import Retries, Sonder, SonderError  # noqa: E402 - found by the line above

MAX_TASK, MAX_RESPONSE, MAX_DETAIL = 20_000, 200_000, 10_000  # characters that the server takes
PATIENCE: Final = Retries(attempts=2)
SECONDS: Final = 5.0  # for one attempt: somebody waits for the agent
CHECK_SECONDS: Final = 600


def project_of(folder: str) -> str | None:
    """A slug from the name of the folder that the agent works in; None if nothing of it is left."""
    slug = re.sub(r"[^a-z0-9_.-]+", "-", Path(folder).name.lower()).strip("-_.")[:63]
    return slug or None


def note_of(session: str) -> Path:
    """Where the interaction under way in a conversation is written down between two events."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "sonder-hook" / hashlib.sha256(session.encode()).hexdigest()[:32]


def on_prompt(sonder: Sonder, event: Mapping[str, Any]) -> str:
    """Starts an interaction; returns what the agent should read."""
    session, task = str(event["session_id"]), str(event["prompt"])[:MAX_TASK]
    started = sonder.start_interaction(task, project=project_of(str(event.get("cwd", ""))), session=session)
    note = note_of(session)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(str(started.id), encoding="utf-8")
    wishes = [f"- {preference.text}" for preference in started.preferences]
    return "\n".join([*(["What people want:", *wishes] if wishes else []), started.context]).strip()


def on_stop(sonder: Sonder, event: Mapping[str, Any], check: str | None) -> None:
    """Hands in what the agent said last, and what the check says of its work."""
    note = note_of(str(event["session_id"]))
    if not note.exists():
        return
    interaction = note.read_text(encoding="utf-8")
    sonder.finish_interaction(interaction, response=last_message(event)[:MAX_RESPONSE])
    if check is not None:
        done = subprocess.run(
            shlex.split(check), cwd=event.get("cwd"), capture_output=True, text=True, timeout=CHECK_SECONDS, check=False
        )  # fmt: skip
        signal = "tests_passed" if done.returncode == 0 else "failed"
        sonder.record_outcome(interaction, signal, detail=(done.stdout + done.stderr)[-MAX_DETAIL:])
    note.unlink(missing_ok=True)


def last_message(event: Mapping[str, Any]) -> str:
    """The agent's last words: in the event, or at the end of the transcript that it names."""
    if "last_assistant_message" in event:
        return str(event["last_assistant_message"])
    try:
        lines = Path(str(event["transcript_path"])).read_text(encoding="utf-8").splitlines()
    except (KeyError, OSError):
        return ""
    said = [text for line in lines if (text := "\n".join(texts_of(json.loads(line))))]
    return said[-1] if said else ""


def texts_of(entry: Mapping[str, Any]) -> Iterable[str]:
    """The texts of one entry of a transcript, if the agent said it."""
    if entry.get("type") == "assistant":
        content = entry["message"]["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part.get("type") == "text":
                yield part["text"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="COMMAND", help="judges the work by its exit status")
    check = parser.parse_args().check
    event = json.load(sys.stdin)
    try:
        with Sonder(os.environ["SONDER"], os.environ["AGENT_KEY"], timeout=SECONDS, retries=PATIENCE) as sonder:
            if event["hook_event_name"] == "UserPromptSubmit":
                sys.stdout.write(on_prompt(sonder, event))
            elif event["hook_event_name"] == "Stop":
                on_stop(sonder, event, check)
    except (SonderError, KeyError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"The hook remembers nothing this time. {type(error).__name__}: {error}\n")
        return 1  # said to the user; the agent goes on
    return 0


if __name__ == "__main__":
    sys.exit(main())
