"""Rebuilding what can be rebuilt: the sums from stored rows, then the standings from the sums. Moves no state."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.models import Lesson, LessonStanding
from memory.models.sql import execute, fetch
from memory.services import quarantine
from memory.services.policies import policy
from memory.services.scoping import lock_all

# Each sum as the query that computes it from `credit` and `lesson_usage`: (key columns, value columns, statement).
_CREDITS = "FROM credit c"
_SCORED = f"{_CREDITS} JOIN outcome x ON x.id = c.outcome_id"
_USAGE = f"{_SCORED} JOIN lesson_usage u ON u.interaction_id = c.interaction_id"
_COHORT = f"{_USAGE} WHERE u.exposure IN ('served', 'probation')"
SUMS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "source_sum": (
        ("account_id", "source"),
        ("n", "losses"),
        f"SELECT c.account_id, c.source, count(*), sum(c.y) {_SCORED} GROUP BY 1, 2",
    ),
    "task_sum": (
        ("account_id", "task_digest"),
        ("o", "e"),
        f"SELECT c.account_id, c.task_digest, sum(c.y), sum(c.b) {_SCORED} GROUP BY 1, 2",
    ),
    "lesson_sum": (
        ("lesson_id",),
        ("o", "e"),
        f"SELECT u.lesson_id, sum(c.weight * c.y), sum(c.weight * c.b) {_COHORT} AND c.weight > 0 GROUP BY 1",
    ),
    "lesson_source_sum": (
        ("lesson_id", "source"),
        ("n", "losses", "reward"),
        f"SELECT u.lesson_id, c.source, count(*), sum(c.y), sum(x.reward) {_COHORT} GROUP BY 1, 2",
    ),
    "lesson_task_sum": (
        ("lesson_id", "task_digest"),
        ("o", "e"),
        f"SELECT u.lesson_id, c.task_digest, sum(c.y), sum(c.b) {_COHORT} GROUP BY 1, 2",
    ),
    "lesson_pair_sum": (
        ("lesson_id", "other_id"),
        ("o", "e"),
        f"SELECT u.lesson_id, v.lesson_id, sum(c.weight * c.y), sum(c.weight * c.b) {_USAGE} "
        "JOIN lesson_usage v ON v.interaction_id = c.interaction_id AND v.lesson_id > u.lesson_id "
        "WHERE u.exposure IN ('served', 'probation') AND v.exposure IN ('served', 'probation') AND c.weight > 0 "
        "GROUP BY 1, 2",
    ),
    "withheld_sum": (
        ("lesson_id", "exposure"),
        ("n", "o", "e"),
        f"SELECT u.lesson_id, u.exposure, count(*), sum(c.y), sum(u.expected_loss) {_USAGE} "
        "WHERE u.exposure NOT IN ('served', 'probation') AND c.weight > 0 GROUP BY 1, 2",
    ),
}
# The same for some interactions alone.
_SUMS_OF = {
    table: (key, values, statement.replace(_CREDITS, "FROM (SELECT * FROM credit WHERE interaction_id = ANY(%s)) c"))
    for table, (key, values, statement) in SUMS.items()
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A sum that the stored rows do not bear out."""

    table: str
    key: tuple[str, ...]
    running: tuple[str, ...] | None  # None: the row is missing
    rebuilt: tuple[str, ...] | None  # None: the row should not be there


def _joinable(side: str, column: str) -> str:
    """A key column for a FULL JOIN, which needs plain equality: a missing account becomes the nil UUID."""
    return f"coalesce({side}.account_id, '{UUID(int=0)}')" if column == "account_id" else f"{side}.{column}"


def differences() -> list[Difference]:
    """Where the running sums are not what the stored rows add up to; empty in a sound store."""
    found = []
    for table, (key, values, statement) in SUMS.items():
        keys = ", ".join(f"coalesce(r.{k}, n.{k})::text" for k in key)
        running, rebuilt = (", ".join(f"{side}.{v}" for v in values) for side in ("r", "n"))
        joined = " AND ".join(_joinable("r", k) + " = " + _joinable("n", k) for k in key)
        rows = fetch(
            f"SELECT {keys}, {running}, {rebuilt} "
            f"FROM {table} r FULL JOIN ({statement}) AS n({', '.join((*key, *values))}) ON {joined} "
            f"WHERE ({running}) IS DISTINCT FROM ({rebuilt})"
        )
        found += [_difference(table, row, len(key), len(values)) for row in rows]
    return found


def _difference(table: str, row: tuple[Any, ...], keys: int, values: int) -> Difference:
    running, rebuilt = row[keys : keys + values], row[keys + values :]
    return Difference(
        table=table,
        key=row[:keys],
        running=None if running[0] is None else tuple(map(str, running)),
        rebuilt=None if rebuilt[0] is None else tuple(map(str, rebuilt)),
    )


def subtract(interactions: Collection[UUID]) -> None:
    """Takes interactions out of every sum, all at once; a sum whose interactions are all gone leaves no row behind.

    Runs under `lock_all`, while their rows are still there.
    """
    ids = list(interactions)
    for table, (key, values, statement) in _SUMS_OF.items():
        gone = f"({statement}) AS gone({', '.join((*key, *values))})"
        same = " AND ".join(_same(k) for k in key)
        moved = ", ".join(f"{v} = t.{v} - gone.{v}" for v in values)
        execute(f"UPDATE {table} t SET {moved} FROM {gone} WHERE {same}", [ids])
        empty = "n" if "n" in values else "e"  # each interaction adds to it
        execute(f"DELETE FROM {table} t USING {gone} WHERE {same} AND t.{empty} = 0", [ids])


def _same(column: str) -> str:
    """A key column equal on both sides, in words that an index can answer."""
    if column == "account_id":
        return "(t.account_id = gone.account_id OR t.account_id IS NULL AND gone.account_id IS NULL)"
    return f"t.{column} = gone.{column}"


@transaction.atomic
def rebuild_sums() -> list[Difference]:
    """Computes every sum again from stored y, weight, b and e; returns what was different before."""
    lock_all()
    found = differences()
    for table in {difference.table for difference in found}:
        key, values, statement = SUMS[table]
        execute(f"DELETE FROM {table}")
        execute(f"INSERT INTO {table} ({', '.join((*key, *values))}) {statement}")
    return found


def follow_policy() -> int:
    """Evaluates anew the standings that were made by another policy than the one in force; returns how many.

    One that was interrupted goes on where it ended. What has no evidence left has nothing to evaluate.
    """
    name = policy().name
    others = LessonStanding.objects.exclude(policy=name)
    if not others.exists():
        return 0
    done = max(rebuild_standings(of=~Q(lessonstanding__policy=name)), default=0)
    others.filter(lesson__lessonsourcesum__isnull=True).update(policy=name)
    return done


def rebuild_standings(batch: int = 200, of: Q | None = None) -> Iterator[int]:
    """Evaluates every lesson that has evidence with today's sums and writes its standing, without moving its state.

    Yields the number of lessons done after each batch, for a progress bar. `of` says which lessons; all unless given.
    """
    rule = policy()
    done, after = 0, UUID(int=0)
    while True:
        judged = Lesson.objects.filter(of or Q(), pk__gt=after, lessonsourcesum__isnull=False).distinct().order_by("pk")
        chunk = list(judged.values_list("pk", "account_id")[:batch])
        if not chunk:
            return
        with transaction.atomic():
            lock_all()
            for account in {account for _, account in chunk}:
                ids = [pk for pk, own in chunk if own == account]
                quarantine.keep(rule.assess(ids, account), rule.name)
                if recalled := _recall_quarantines(ids):
                    quarantine.keep(rule.assess(recalled, account), rule.name)
        after = chunk[-1][0]
        done += len(chunk)
        yield done


def _recall_quarantines(lessons: list[UUID]) -> list[UUID]:
    """Since when lessons are quarantined, from the journal, where a standing has lost it; returns those.

    Probation counts from then, and so do the rows that it judges by.
    """
    rows = fetch(
        """
        UPDATE lesson_standing s SET quarantined_at = e.entered_at FROM (
            SELECT lesson, max(created_at) AS entered_at FROM trust_event
            WHERE lesson = ANY(%s) AND kind IN ('quarantined', 'quarantined_by_reviewer') GROUP BY lesson
        ) e JOIN lesson l ON l.id = e.lesson AND l.state = 'quarantined'
        WHERE s.lesson_id = e.lesson AND s.quarantined_at IS NULL RETURNING s.lesson_id
        """,
        [lessons],
    )
    return [lesson for (lesson,) in rows]
