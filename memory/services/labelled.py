"""Questions whose answers are known: tasks with the lessons that fit them, and questions that no lesson fits.

A store has them by itself. A lesson fits the task that it was learned from, and a task that was won with it. Or a file
brings them.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from memory.errors import Invalid
from memory.models import Account, Lesson
from memory.models.sql import fetch
from memory.rules.text import clean
from memory.search import Scope
from memory.services.everyday import EVERYDAY
from memory.services.scoping import search_scope
from memory.services.task_digest import task_digest

NEWEST: Final = 5000  # interactions and lessons that are looked at
MOST: Final = 300  # tasks: more narrow the intervals little, and each is looked up once


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, where it is asked, and what is right for it."""

    text: str
    scope: Scope
    fits: frozenset[UUID] = frozenset()  # lessons that are known to fit; none: off-domain
    basis: str = "file"  # how it is known: learned, won, file, everyday


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a space can be calibrated with."""

    tasks: tuple[Asked, ...]
    off_domain: tuple[Asked, ...]

    @property
    def basis(self) -> dict[str, int]:
        """How many questions are known in each way."""
        return dict(Counter(asked.basis for asked in (*self.tasks, *self.off_domain)))

    @property
    def digest(self) -> str:
        """SHA-256 of the questions with what fits them, whatever their order."""
        lines = sorted(
            f"{task_digest(asked.text)} {asked.scope.account_id} {sorted(map(str, asked.fits))}"
            for asked in (*self.tasks, *self.off_domain)
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


_KNOWN = f"""
    WITH newest AS (SELECT id, account_id, task FROM interaction ORDER BY id DESC LIMIT {NEWEST}),
    taught AS (
        SELECT id, source_interaction FROM lesson
        WHERE state = 'active' AND source_interaction IS NOT NULL ORDER BY id DESC LIMIT {NEWEST}
    )
    SELECT i.account_id, i.task, t.id, 'learned' FROM taught t JOIN interaction i ON i.id = t.source_interaction
    UNION ALL
    SELECT i.account_id, i.task, l.id, 'won' FROM newest i
        JOIN lesson_usage u ON u.interaction_id = i.id JOIN lesson l ON l.id = u.lesson_id AND l.state = 'active'
    WHERE u.exposure IN ('served', 'probation') AND u.reward > 0 AND u.outcome_source IN ('caller', 'machine')
    ORDER BY 3 DESC, 4, 1, 2
"""


def of_store(off_domain: Sequence[str] = EVERYDAY, *, most: int = MOST) -> Evidence:
    """The store's own evidence: at most `most` tasks, those of the newest lessons.

    A task that was won speaks for the lessons handed out for it, and those had passed the gate of their day: such
    tasks show what a stricter gate would lose, and not what a more open one would gain. Those that a lesson was
    learned from show both.
    """
    accounts = Account.objects.in_bulk()
    found: dict[tuple[UUID, str], Asked] = {}
    for account, task, lesson, basis in fetch(_KNOWN):
        key = (account, task_digest(task))
        known = found.get(key)
        fits = (known.fits if known else frozenset()) | {lesson}
        strongest = "learned" if "learned" in (basis, known.basis if known else "") else "won"
        found[key] = Asked(text=task, scope=search_scope(accounts[account]), fits=fits, basis=strongest)
    tasks = sorted(found.values(), key=lambda asked: asked.basis != "learned")[:most]
    return Evidence(tasks=tuple(tasks), off_domain=off_domain_questions(off_domain, tasks))


def of_files(queries: Path | None, off_domain: Path | None) -> Evidence:
    """Questions of JSON lines, about the lessons of this store.

    `queries`: {"query", "lesson_id"}, the lesson by its id here or in the file it was imported from. `off_domain`:
    {"query"}. Without one of them the store's own, or the everyday questions. Raises Invalid naming file and line.
    """
    strangers = EVERYDAY if off_domain is None else tuple(row["query"] for _, row in rows_of(off_domain, "query"))
    if queries is None:
        return of_store(strangers)
    rows = list(rows_of(queries, "query", "lesson_id"))
    ids = _lessons({row["lesson_id"] for _, row in rows})
    for number, row in rows:
        if row["lesson_id"] not in ids:
            raise Invalid(f"{queries.name}, line {number}: no lesson in service here has the id {row['lesson_id']}.")
    lessons = Lesson.objects.filter(pk__in=[pk for fits in ids.values() for pk in fits])
    homes = dict(lessons.values_list("pk", "account_id"))
    tasks = []
    for _, row in rows:
        fits = frozenset(ids[row["lesson_id"]])
        scope = Scope(account_id=homes[next(iter(fits))], reviewed_only=False)
        tasks.append(Asked(text=row["query"], scope=scope, fits=fits))
    return Evidence(tasks=tuple(tasks), off_domain=off_domain_questions(strangers, tasks))


def off_domain_questions(texts: Sequence[str], tasks: Sequence[Asked]) -> tuple[Asked, ...]:
    """The texts, asked where most of the tasks are."""
    homes = Counter(task.scope for task in tasks)
    scope = homes.most_common(1)[0][0] if homes else Scope(account_id=None, reviewed_only=False)
    basis = "everyday" if texts is EVERYDAY else "file"
    return tuple(Asked(text=text, scope=scope, basis=basis) for text in texts)


def rows_of(path: Path, *wanted: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The objects of a JSONL file with their line, from 1. Raises Invalid where one lacks a wanted text."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8.") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise Invalid(f"{path.name}, line {number} is not JSON.") from None
        if not isinstance(row, dict):
            raise Invalid(f"{path.name}, line {number} is no object.")
        told = {name: clean(str(row[name])).strip() if isinstance(row.get(name), str) else "" for name in wanted}
        for name, value in told.items():
            if not value:
                raise Invalid(f'{path.name}, line {number} needs a "{name}" that is a text.')
        yield number, told


def _lessons(names: Iterable[str]) -> dict[str, list[UUID]]:
    """The active lessons that each name means: an id of this store, or of the file a lesson was imported from."""
    found: dict[str, list[UUID]] = {}
    statement = """
        SELECT n.name, l.id FROM unnest(%s::text[]) AS n(name) JOIN lesson l
            ON l.state = 'active' AND (l.source_ref = n.name OR l.id::text = lower(n.name))
    """
    for name, pk in fetch(statement, [list(names)]):
        found.setdefault(name, []).append(pk)
    return found
