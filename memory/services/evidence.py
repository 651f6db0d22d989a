"""A lesson's record, read by index: the rows that a trust decision looks at, and the counts beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from memory.models.sql import fetch

# Rows read of each lesson, newest first. The long window is for lessons whose last 32 rows hold no win: 256 losses in
# cohorts of at most 50 are worth 5 losses alone, far beyond every threshold, so more rows could decide nothing else.
WINDOW = 32
LONG_WINDOW = 256


@dataclass(frozen=True, kw_only=True)
class Row:
    """One scored exposure that counts."""

    interaction: UUID
    account: UUID  # of the interaction; others may see the row as a count only
    task_digest: str
    source: str  # who judged
    signal: str
    reward: Decimal
    exposure: str  # served or probation
    credit_seq: int
    at: datetime  # when the outcome was recorded
    cohort: int = 0  # lessons handed out together; 0 where nobody asked


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a policy may know of one lesson."""

    lesson: UUID
    state: str
    rows: tuple[Row, ...]  # newest first
    wins: int  # over its life, by the sources that count
    losses: int
    ledger_from_seq: int = 0  # rows up to here are history: a reviewer released the lesson then
    quarantined_at: datetime | None = None
    version: int = 0  # of the standing; 0 while there is none

    @property
    def scored(self) -> int:
        return self.wins + self.losses

    def last(self, *, win: bool) -> datetime | None:
        """When the latest win (or loss) among the rows was recorded."""
        return next((row.at for row in self.rows if (row.reward > 0) is win), None)


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A policy's answer for one lesson, with everything it rested on."""

    enter: bool  # its record says quarantine
    evidence: dict[str, Any] = field(default_factory=dict)  # as JSON, see docs/evidence.md
    s: float | None = None  # the ledger, where the policy keeps one


_ROWS = """
    SELECT l.id, u.interaction_id, i.account_id, c.task_digest, u.outcome_source, u.outcome_signal, u.reward,
        u.exposure, u.credit_seq, u.outcome_at
    FROM unnest(%s::uuid[]) AS l(id)
        LEFT JOIN lesson_standing s ON s.lesson_id = l.id
        CROSS JOIN LATERAL (
            SELECT * FROM lesson_usage
            WHERE lesson_id = l.id AND exposure IN ('served', 'probation') AND weight > 0
                AND outcome_source = ANY(%s) AND credit_seq > coalesce(s.ledger_from_seq, 0)
            ORDER BY credit_seq DESC LIMIT %s
        ) AS u
        JOIN interaction i ON i.id = u.interaction_id
        JOIN credit c ON c.interaction_id = u.interaction_id
    ORDER BY l.id, u.credit_seq DESC
"""

_COUNTS = """
    SELECT l.id, l.state, coalesce(sum(t.n - t.losses), 0)::bigint, coalesce(sum(t.losses), 0)::bigint,
        coalesce(s.ledger_from_seq, 0), s.quarantined_at, coalesce(s.version, 0)
    FROM lesson l
        LEFT JOIN lesson_source_sum t ON t.lesson_id = l.id AND t.source = ANY(%s)
        LEFT JOIN lesson_standing s ON s.lesson_id = l.id
    WHERE l.id = ANY(%s)
    GROUP BY l.id, s.lesson_id
"""


def rows_of(lessons: Iterable[UUID], sources: Sequence[str], window: int) -> dict[UUID, list[Row]]:
    """The latest `window` rows of each lesson that count, newest first."""
    found: dict[UUID, list[Row]] = {}
    for row in fetch(_ROWS, [list(lessons), list(sources), window]):
        found.setdefault(row[0], []).append(
            Row(
                interaction=row[1],
                account=row[2],
                task_digest=row[3],
                source=row[4],
                signal=row[5],
                reward=row[6],
                exposure=row[7],
                credit_seq=row[8],
                at=row[9],
            )
        )
    return found


def records(lessons: Iterable[UUID], sources: Sequence[str]) -> list[Record]:
    """The records of lessons that still exist, in the order of their ids."""
    ids = sorted(set(lessons))
    rows = rows_of(ids, sources, WINDOW)
    unbroken = [i for i, own in rows.items() if len(own) == WINDOW and all(row.reward <= 0 for row in own)]
    if unbroken:
        rows.update(rows_of(unbroken, sources, LONG_WINDOW))
    counts = fetch(_COUNTS, [list(sources), ids])
    return [
        Record(
            lesson=lesson,
            state=state,
            rows=tuple(rows.get(lesson, ())),
            wins=wins,
            losses=losses,
            ledger_from_seq=from_seq,
            quarantined_at=quarantined_at,
            version=version,
        )
        for lesson, state, wins, losses, from_seq, quarantined_at, version in sorted(counts)
    ]


def cohort_sizes(interactions: Iterable[UUID]) -> dict[UUID, int]:
    """How many lessons each interaction was handed."""
    ids = list(set(interactions))
    if not ids:
        return {}
    statement = """
        SELECT interaction_id, count(*) FROM lesson_usage
        WHERE interaction_id = ANY(%s) AND exposure IN ('served', 'probation') GROUP BY interaction_id
    """
    return dict(fetch(statement, [ids]))
