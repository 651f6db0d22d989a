"""What agents, operators, reviewers and workers do, through the ways that the product offers them."""

import inspect
import json
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from celery import Task
from django.core.management import call_command
from django.db import connection

import review.tasks
from memory import conf, tasks
from memory.models import Account, Lesson, LessonDistillation
from memory.rules.text import digest
from memory.search.support import samples
from memory.search.terms import statistics
from tests.conftest import Agent
from tests.http.calls import INTERACTIONS, LESSONS, RETRIEVE, report, start

DISTILLATIONS = "/api/v1/distillations/"
PREFERENCES = "/api/v1/preferences/"
FACTS = "/api/v1/facts/"
SESSIONS = "/api/v1/sessions/"
TASKS = "/api/v1/tasks/"
HEALTH = "/api/v1/health/"

TIMEOUT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TIMEOUT_TASK = "pass a timeout to the requests.get call of the worker, so that no dead peer blocks it"
TIMEOUT_AGAIN = (
    "Pass to every `requests.get` call `timeout=30`, because a dead peer blocks the worker forever without it."
)
CLOCK = "Freeze the clock with `time_machine.travel` in tests that compare dates, because a tolerance hides a late day."
CLOCK_TASK = "freeze the clock in the tests that compare dates, so that no late day hides"
CURSOR = "Close every `psycopg` cursor before the commit, because an open cursor keeps the snapshot of the table alive."
CURSOR_TASK = "close the psycopg cursor before the commit, so that no snapshot of the table stays alive"


def finish(agent: Agent, interaction: str, response: str) -> None:
    """Hands in what the agent answered."""
    answer = agent.client.patch(f"{INTERACTIONS}{interaction}/", {"response": response}, format="json")
    assert answer.status_code == 200, answer.content


def work(agent: Agent, task: str, response: str, signal: str = "accepted", **fields: object) -> str:
    """A whole interaction: started, answered and judged. Nothing in the background has run yet."""
    interaction = str(start(agent.client, task, **fields)["id"])
    finish(agent, interaction, response)
    assert report(agent.client, interaction, signal).status_code == 201
    return interaction


def learn(agent: Agent, text: str, task: str = "fetch the monthly report from billing", **fields: object) -> str:
    """Good work whose answer holds a lesson, distilled by the worker's own task; returns the interaction."""
    interaction = work(agent, task, f"It works now.\n\nLesson: {text}\n\nAll tests pass.", **fields)
    tasks.distill_interaction(interaction)
    return interaction


def distilled(agent: Agent, interaction: str) -> tuple[str, str | None]:
    """State and reason of a distillation, as its account reads them."""
    rows = {row["id"]: row for row in pages(agent, DISTILLATIONS)}
    return rows[interaction]["state"], rows[interaction]["result_reason"]


def pages(agent: Agent, url: str, **query: object) -> list[dict[str, Any]]:
    """Every row of a list, page by page."""
    answer = agent.client.get(url, query).json()
    rows = list(answer["results"])
    while answer["next"]:
        answer = agent.client.get(answer["next"]).json()
        rows += answer["results"]
    return rows


def recalled(agent: Agent, task: str, **fields: object) -> list[str]:
    """Texts that an agent is handed for a task."""
    return [found["text"] for found in start(agent.client, task, **fields)["lessons"]]


def looked_up(agent: Agent, task: str, **fields: object) -> dict[str, Any]:
    """The same lessons without consequences, with every candidate that was considered."""
    answer = agent.client.post(RETRIEVE, {"task": task, "explain": True, **fields}, format="json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def listed(agent: Agent) -> list[str]:
    """Texts of all lessons that an account may read."""
    return [row["text"] for row in pages(agent, LESSONS)]


def command(name: str, *arguments: str) -> Any:
    """What a command says with `--json`."""
    out = StringIO()
    call_command(name, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def import_texts(account: Account, *texts: str, strict: bool = False) -> dict[str, Any]:
    """The report of `import_lessons` on a file of these texts; they are the account's where lessons are scoped."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "lessons.jsonl"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        scope = ["--account", account.slug] if conf.current().lesson_scope == "account" else []
        report = command("import_lessons", str(file), *scope, *(["--strict"] if strict else []))
    return dict(report)


def imported(account: Account, text: str) -> Lesson:
    """A lesson that an operator brought in."""
    assert import_texts(account, text)["stored"] == 1
    return stored(account, text)


def stored(account: Account, text: str) -> Lesson:
    """The lesson of this value in the account's scope."""
    scope = account.pk if conf.current().lesson_scope == "account" else None
    return Lesson.objects.get(account_id=scope, text_sha256=digest(text))


def lesson_of(interaction: str) -> Lesson:
    """What was learned from an interaction."""
    return Lesson.objects.get(pk=LessonDistillation.objects.get(pk=interaction).lesson)


def background() -> list[str]:
    """Runs every scheduled task of the worker once; returns their names."""
    found = [
        task
        for module in (tasks, review.tasks)
        for _, task in inspect.getmembers(module, lambda value: isinstance(value, Task))
    ]
    scheduled = [task for task in found if not inspect.signature(task.run).parameters]
    for task in scheduled:
        task()
    return [task.name for task in scheduled]


def forget_caches() -> None:
    """As a process that has just started: nothing is kept in memory."""
    samples.forget()
    statistics.forget()


def tables_with(text: str) -> list[str]:
    """Tables that hold a text in any column of any row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        names = [name for (name,) in cursor.fetchall()]
        holding = []
        for name in names:
            cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{name}" AS t WHERE strpos(t::text, %s) > 0)', [text])
            holding += [name] if cursor.fetchone()[0] else []
    return holding


def tables_naming(*ids: UUID | str) -> list[str]:
    """Tables that name any of these rows, but for the proof of an erasure and the place that a job has come to."""
    return sorted({name for pk in ids for name in tables_with(str(pk))} - {"erasure_record", "job_run"})
