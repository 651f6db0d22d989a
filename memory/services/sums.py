"""The running sums: exact decimals, moved in the credit's own transaction, rebuilt from stored rows alone.

`add` and `take_back` move one interaction; `read` gives what the expected loss needs before anything is added.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any
from uuid import UUID

from memory.models.sql import execute, fetch
from memory.rules.expectation import Tally


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one scored interaction adds to the sums."""

    account_id: UUID | None  # scope of the sums
    source: str  # who judged
    task_digest: str
    y: int  # 1 for a loss, 0 for a win
    weight: Decimal  # of the source, in [0, 1]
    reward: Decimal
    b: Decimal  # the source's loss rate before this interaction
    cohort: tuple[UUID, ...]  # lessons handed out
    withheld: tuple[tuple[UUID, str, Decimal], ...]  # lessons held back, why, and the expected loss stored for each


def _add(table: str, key: Sequence[str], values: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    """Adds the rows' values to the sums of their keys. Rows go in the order of their keys: no two writers deadlock."""
    if not rows:
        return
    rows.sort(key=lambda row: tuple(str(part) for part in row[: len(key)]))
    columns = [*key, *values]
    marks = ", ".join(["(" + ", ".join(["%s"] * len(columns)) + ")"] * len(rows))
    moved = ", ".join(f"{v} = {table}.{v} + excluded.{v}" for v in values)
    execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {marks} "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {moved}",
        [value for row in rows for value in row],
    )


def _take_back(table: str, key: Sequence[str], values: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    """Subtracts the rows' values. An INSERT cannot do it: PostgreSQL checks its row before it looks for a conflict."""
    moved = ", ".join(f"{v} = {v} - %s" for v in values)
    for row in sorted(rows, key=lambda row: tuple(str(part) for part in row[: len(key)])):
        known = [(k, value) for k, value in zip(key, row, strict=False) if value is not None]
        where = " AND ".join([f"{k} = %s" for k, _ in known] + [f"{k} IS NULL" for k in key if k not in dict(known)])
        execute(f"UPDATE {table} SET {moved} WHERE {where}", [*row[len(key) :], *(value for _, value in known)])


def add(c: Contribution) -> None:
    """Adds one interaction to every sum."""
    _each(c, _add)


def take_back(c: Contribution) -> None:
    """Takes one interaction out of every sum; a sum whose interactions are all gone leaves no row behind."""
    _each(c, _take_back)
    _forget_empty(c)


def _each(c: Contribution, change: Callable[[str, Sequence[str], Sequence[str], list[tuple[Any, ...]]], None]) -> None:
    """What the interaction is worth in each sum."""
    y, w = Decimal(c.y), c.weight
    pairs = [(a, b) if a < b else (b, a) for a, b in combinations(c.cohort, 2)]
    change("source_sum", ("account_id", "source"), ("n", "losses"), [(c.account_id, c.source, 1, c.y)])
    change("task_sum", ("account_id", "task_digest"), ("o", "e"), [(c.account_id, c.task_digest, y, c.b)])
    by_source = [(lesson, c.source, 1, c.y, c.reward) for lesson in c.cohort]
    change("lesson_source_sum", ("lesson_id", "source"), ("n", "losses", "reward"), by_source)
    by_task = [(lesson, c.task_digest, y, c.b) for lesson in c.cohort]
    change("lesson_task_sum", ("lesson_id", "task_digest"), ("o", "e"), by_task)
    if w > 0:  # what weighs nothing leaves no row in a weighted sum
        change("lesson_sum", ("lesson_id",), ("o", "e"), [(lesson, w * y, w * c.b) for lesson in c.cohort])
        change("lesson_pair_sum", ("lesson_id", "other_id"), ("o", "e"), [(a, b, w * y, w * c.b) for a, b in pairs])
        held = [(lesson, exposure, 1, y, e) for lesson, exposure, e in c.withheld]
        change("withheld_sum", ("lesson_id", "exposure"), ("n", "o", "e"), held)


def _forget_empty(c: Contribution) -> None:
    """Deletes what is empty: each interaction adds to `e`, so a sum of none is one whose `e` is 0.

    Looks only where something was taken back, each by its whole key: the tables may be large.
    """
    cohort, held = list(c.cohort), [lesson for lesson, _, _ in c.withheld]
    same, scope = _same(c.account_id)
    for table, empty, params in (
        ("source_sum", f"n = 0 AND {same} AND source = %s", [*scope, c.source]),
        ("task_sum", f"e = 0 AND {same} AND task_digest = %s", [*scope, c.task_digest]),
        ("lesson_source_sum", "n = 0 AND lesson_id = ANY(%s) AND source = %s", [cohort, c.source]),
        ("lesson_task_sum", "e = 0 AND lesson_id = ANY(%s) AND task_digest = %s", [cohort, c.task_digest]),
        ("lesson_sum", "e = 0 AND lesson_id = ANY(%s)", [cohort]),
        ("lesson_pair_sum", "e = 0 AND lesson_id = ANY(%s) AND other_id = ANY(%s)", [cohort, cohort]),
        ("withheld_sum", "n = 0 AND lesson_id = ANY(%s)", [held]),
    ):
        execute(f"DELETE FROM {table} WHERE {empty}", params)


def _same(account_id: UUID | None) -> tuple[str, list[UUID]]:
    """Where a sum is of this scope. IS NOT DISTINCT FROM would say the same and use no index."""
    return ("account_id IS NULL", []) if account_id is None else ("account_id = %s", [account_id])


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Today's sums around one interaction, for the lessons in it."""

    source: tuple[int, int]  # interactions and losses of the judge
    task: Tally
    lesson: dict[UUID, Tally]  # weighted, of each lesson of the cohort
    pair: dict[tuple[UUID, UUID], Tally]  # weighted, smaller id first
    own_source: dict[UUID, tuple[int, int]]  # the judge's interactions and losses with each lesson
    own_task: dict[UUID, Tally]  # on this task, with each lesson
    withheld: dict[UUID, Tally]  # without each lesson

    def without(self, lesson: UUID, peer: UUID) -> Tally:
        """The peer's sums over the interactions that did not have the lesson."""
        total = self.lesson.get(peer, Tally())
        shared = self.pair.get((min(lesson, peer), max(lesson, peer)), Tally())
        return total.without(shared)

    def source_without(self, lesson: UUID) -> tuple[int, int]:
        """Interactions and losses of the judge without the lesson."""
        n, losses = self.own_source.get(lesson, (0, 0))
        return self.source[0] - n, self.source[1] - losses

    def task_without(self, lesson: UUID) -> Tally:
        return self.task.without(self.own_task.get(lesson, Tally()))


def _tally(row: Sequence[Any]) -> Tally:
    return Tally(observed=row[0], expected=row[1])


def read(account_id: UUID | None, source: str, task_digest: str, lessons: Iterable[UUID]) -> Sums:
    """The sums that the expected loss of each lesson in one interaction is made of."""
    ids = list(lessons)
    same, scope = _same(account_id)
    by_source = fetch(f"SELECT n, losses FROM source_sum WHERE {same} AND source = %s", [*scope, source])
    by_task = fetch(f"SELECT o, e FROM task_sum WHERE {same} AND task_digest = %s", [*scope, task_digest])
    own = "WHERE lesson_id = ANY(%s)"
    return Sums(
        source=by_source[0] if by_source else (0, 0),
        task=_tally(by_task[0]) if by_task else Tally(),
        lesson={r[0]: _tally(r[1:]) for r in fetch(f"SELECT lesson_id, o, e FROM lesson_sum {own}", [ids])},
        pair={
            (r[0], r[1]): _tally(r[2:])
            for r in fetch(
                f"SELECT lesson_id, other_id, o, e FROM lesson_pair_sum {own} AND other_id = ANY(%s)", [ids, ids]
            )
        },
        own_source={
            r[0]: (r[1], r[2])
            for r in fetch(f"SELECT lesson_id, n, losses FROM lesson_source_sum {own} AND source = %s", [ids, source])
        },
        own_task={
            r[0]: _tally(r[1:])
            for r in fetch(
                f"SELECT lesson_id, o, e FROM lesson_task_sum {own} AND task_digest = %s", [ids, task_digest]
            )
        },
        withheld={
            r[0]: _tally(r[1:])
            for r in fetch(f"SELECT lesson_id, sum(o), sum(e) FROM withheld_sum {own} GROUP BY 1", [ids])
        },
    )
