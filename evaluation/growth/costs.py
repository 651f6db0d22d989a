"""What pages and scheduled jobs cost in a store: time, statements, and which large tables they read from end to end.

Runs in a process on the measured store (`inside.py`).
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.test import Client

from memory.models import Account, Lesson
from memory.models.sql import fetch
from memory.services import doctor
from memory.services.credit import credit
from memory.services.keys import create_key
from memory.services.metrics import exposition

ROUNDS: Final = 5  # looks at a page, after one that is not counted
LARGE: Final = 4_500  # rows of a table that is not read from end to end without a reason
LONG_SECONDS: Final = 60.0  # a job that took longer is not run again
WORDS: Final = 12  # of a lesson, which make a task that it fits
EXPLAINED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one thing took."""

    seconds: float  # a page: the median of ROUNDS; a job: the first run
    again: float | None  # a job's second run, which finds nothing new; None for a page
    statements: int
    scans: tuple[str, ...]  # tables of LARGE rows or more that are read from end to end, with their rows
    characters: int  # of the page; 0 for a job


def costs() -> Mapping[str, Mapping[str, Any]]:
    """Of every page, of what a monitor asks for, and of every scheduled job."""
    logging.disable(logging.WARNING)
    large = large_tables()
    found = {name: _page(look, large) for name, look in _looks()}
    found |= {name: _job(job, large) for name, job in jobs().items()}
    return {name: asdict(cost) for name, cost in found.items()}


def large_tables() -> dict[str, int]:
    """Tables of LARGE rows or more, with their rows as of the last ANALYZE."""
    rows = fetch("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r' AND reltuples >= %s", [LARGE])
    return {name: int(n) for name, n in rows}


def _looks() -> Iterator[tuple[str, Callable[[], int]]]:
    client = Client(headers={"Host": "localhost"})
    client.force_login(get_user_model().objects.get(username="reviewer"))
    lesson = Lesson.objects.order_by("pk")[0].pk
    pages = {
        "dashboard": "",
        "inbox": "inbox/",
        "a lesson's evidence": f"lessons/{lesson}/",
        "lessons found": "lessons/?q=the",
        "quarantine": "quarantine/",
        "contradictions": "contradictions/",
        "work to judge": "outcomes/",
        "work": "interactions/",
        "retrieval": "retrieval/?q=Retry+the+call",
        "preferences": "preferences/",
        "prune plans": "prune/",
        "health": "health/",
        "audit": "audit/",
        "people": "people/",
    }
    for name, path in pages.items():
        yield name, partial(_look, client, f"/review/{path}")
    yield "metrics", lambda: len(exposition())
    yield "doctor", lambda: len(list(doctor.examine()))


def _look(client: Client, url: str) -> int:
    answer = client.get(url)
    if answer.status_code != 200:
        raise RuntimeError(f"{url} answers {answer.status_code}.")
    return len(answer.content)


def jobs() -> dict[str, Callable[[], object]]:
    """Every scheduled job by what its schedule calls it."""
    found = {}
    schedule: Mapping[str, Mapping[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    for name, entry in schedule.items():
        module, _, task = entry["task"].rpartition(".")
        found[f"job: {name}"] = getattr(import_module(module), task)
    return found


def _page(look: Callable[[], int], large: Mapping[str, int]) -> Cost:
    with noted() as statements:
        characters = look()
    count = len(statements)
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        look()
        taken.append(time.perf_counter() - began)
    seconds = sorted(taken)[ROUNDS // 2]
    return Cost(seconds=seconds, again=None, statements=count, scans=scans(statements, large), characters=characters)


def _job(job: Callable[[], object], large: Mapping[str, int]) -> Cost:
    with noted() as statements:
        began = time.perf_counter()
        job()
        seconds = time.perf_counter() - began
    again = None
    if seconds < LONG_SECONDS:
        began = time.perf_counter()
        job()
        again = time.perf_counter() - began
    return Cost(seconds=seconds, again=again, statements=len(statements), scans=scans(statements, large), characters=0)


Statements = list[tuple[str, Any]]


@contextmanager
def noted() -> Iterator[Statements]:
    """The statements that are run meanwhile, with their parameters."""
    statements: Statements = []

    def note(execute: Any, statement: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append((statement, params))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(note):
        yield statements


def scans(statements: Statements, large: Mapping[str, int]) -> tuple[str, ...]:
    """The large tables that the planner reads from end to end for these statements, each with its rows."""
    found = {node["Relation Name"] for node in _nodes(statements) if node["Node Type"] == "Seq Scan"}
    return tuple(f"{name} ({large[name]:,})" for name in sorted(found & large.keys()))


def indexes(statements: Statements) -> set[str]:
    """The indexes on vectors and words that it reads."""
    used = {node["Index Name"] for node in _nodes(statements) if "Index Name" in node}
    return {
        re.sub(r"[0-9a-f]{32}", "SPACE", name) for name in used if name.startswith(("lesson_e", "lesson_s", "lesson_i"))
    }


def _nodes(statements: Statements) -> Iterator[Mapping[str, Any]]:
    """Every node of every plan, each statement once."""
    for statement, params in dict(statements).items():
        if statement.lstrip(" (\n").upper().startswith(EXPLAINED):
            yield from _below(_plan(statement, params))


def _plan(statement: str, params: Any) -> Mapping[str, Any]:
    try:
        with transaction.atomic():
            ((told,),) = fetch(f"EXPLAIN (FORMAT JSON) {statement}", params)
    except DatabaseError:  # it names what exists only within its own transaction
        return {"Node Type": ""}
    plan: Mapping[str, Any] = (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]
    return plan


def _below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for each in node.get("Plans", ()):
        yield from _below(each)


def plans() -> Mapping[str, Any]:
    """A loop of the largest account and one of a small account through the API, and its credit: how many statements,
    and which large tables they read from end to end."""
    large = large_tables()
    largest, *_, small = Account.objects.filter(slug__startswith="a").order_by("pk")
    return {name: _loop(account, large) for name, account in (("largest", largest), ("small", small))}


def _loop(account: Account, large: Mapping[str, int]) -> Mapping[str, Any]:
    key = create_key(account, name="plans", source="caller", scopes=["loop"]).secret
    client = Client(headers={"Host": "localhost", "Authorization": f"Bearer {key}"})

    def send(method: str, path: str, **body: str) -> Any:
        answer = client.generic(method, f"/api/v1/interactions/{path}", json.dumps(body), "application/json")
        return answer.json()

    about = Lesson.objects.filter(account=account, state="active").values_list("text", flat=True)[0]
    send("POST", "", task="warms up what the process keeps")
    with noted() as statements:
        started = send("POST", "", task=" ".join(about.split()[:WORDS]))
        send("PATCH", f"{started['id']}/", response="Done.")
        send("POST", f"{started['id']}/outcomes/", signal="failed")
        credit(UUID(started["id"]))
    return {
        "lessons": len(started["lessons"]),
        "statements": len(statements),
        "scans": scans(statements, large),
        "indexes": sorted(indexes(statements)),
    }
