"""A lesson's record, read by index: the rows that a trust decision looks at, and the counts beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from memory.models.sql import fetch


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
    weight: Decimal  # of the judge
    expected: Decimal | None  # the expected loss as it stood at the row's own credit
    exposed_at: datetime  # when the lesson was handed out
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
    on_trial: bool = False  # as the last evaluation left it
    released_seq: int | None = None  # a reviewer's release to trial: the last row credited then,
    released_s: float | None = None  # and the ledger at that moment

    @property
    def scored(self) -> int:
        return self.wins + self.losses

    def last(self, *, win: bool) -> datetime | None:
        """When the latest win (or loss) among the rows was recorded."""
        return next((row.at for row in self.rows if (row.reward > 0) is win), None)


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A policy's answer for one lesson, with everything it rested on."""

    enter: bool  # a lesson in service goes into quarantine now
    leave: bool  # a quarantined one comes out now, unless a person holds it
    evidence: dict[str, Any] = field(default_factory=dict)  # as JSON, see docs/evidence.md
    s: float | None = None  # the ledger S in nats, where the policy keeps one
    d: float | None = None  # the evidence D of the probation rows in nats, likewise
    on_trial: bool = False  # a coin decides whether it is served


@dataclass(frozen=True, kw_only=True)
class Occasion:
    """What moved a lesson's evidence: a row that was credited, or corrected."""

    exposure: str
    weight: Decimal  # of the judge who decides now; 0 when all have retracted
    loss: int | None  # 1 or 0; None when all have retracted
    weight_before: Decimal | None = None  # for a correction, the weight that the row had; None at its first credit
    without: UUID | None = None  # an interaction to leave out of the ledger: what an excuse would do is looked at first


_ROWS = """
    SELECT l.id, u.interaction_id, i.account_id, c.task_digest, u.outcome_source, u.outcome_signal, u.reward,
        u.exposure, u.credit_seq, u.outcome_at, u.weight, u.expected_loss, u.created_at
    FROM unnest(%s::uuid[]) AS l(id)
        LEFT JOIN lesson_standing s ON s.lesson_id = l.id
        CROSS JOIN LATERAL (
            SELECT * FROM lesson_usage w
            WHERE lesson_id = l.id AND exposure IN ('served', 'probation') AND weight > 0
                AND outcome_source = ANY(%s) AND credit_seq > coalesce(s.ledger_from_seq, 0)
                AND interaction_id <> ALL(%s::uuid[])
                AND NOT EXISTS (
                    SELECT 1 FROM usage_exemption x WHERE x.usage_id = w.id AND x.reverts_id IS NULL
                        AND NOT EXISTS (SELECT 1 FROM usage_exemption r WHERE r.reverts_id = x.id)
                )
            ORDER BY credit_seq DESC LIMIT %s
        ) AS u
        JOIN interaction i ON i.id = u.interaction_id
        JOIN credit c ON c.interaction_id = u.interaction_id
    ORDER BY l.id, u.credit_seq DESC
"""

_COUNTS = """
    SELECT l.id, l.state, coalesce(sum(t.n - t.losses), 0)::bigint, coalesce(sum(t.losses), 0)::bigint,
        coalesce(s.ledger_from_seq, 0), s.quarantined_at, coalesce(s.version, 0), coalesce(s.on_trial, false),
        s.released_seq, s.released_s
    FROM lesson l
        LEFT JOIN lesson_source_sum t ON t.lesson_id = l.id AND t.source = ANY(%s)
        LEFT JOIN lesson_standing s ON s.lesson_id = l.id
    WHERE l.id = ANY(%s)
    GROUP BY l.id, s.lesson_id
"""


def rows_of(
    lessons: Iterable[UUID], sources: Sequence[str], window: int, occasions: Mapping[UUID, Occasion] | None = None
) -> dict[UUID, list[Row]]:
    """The latest `window` rows of each lesson that count, newest first.

    What a person exempted does not count, nor what a lesson's occasion leaves out.
    """
    found: dict[UUID, list[Row]] = {}
    left_out = [occasion.without for occasion in (occasions or {}).values() if occasion.without]
    for row in fetch(_ROWS, [list(lessons), list(sources), left_out, window]):
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
                weight=row[10],
                expected=row[11],
                exposed_at=row[12],
            )
        )
    return found


def records(lessons: Iterable[UUID], sources: Sequence[str], rows: Mapping[UUID, Sequence[Row]]) -> list[Record]:
    """The records of the lessons that still exist, in the order of their ids, around rows that were read before."""
    counts = fetch(_COUNTS, [list(sources), list(lessons)])
    return [
        Record(
            lesson=row[0],
            state=row[1],
            rows=tuple(rows.get(row[0], ())),
            wins=row[2],
            losses=row[3],
            ledger_from_seq=row[4],
            quarantined_at=row[5],
            version=row[6],
            on_trial=row[7],
            released_seq=row[8],
            released_s=row[9],
        )
        for row in sorted(counts)
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
