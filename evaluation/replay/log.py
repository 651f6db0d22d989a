"""The store's log in the order in which it happened: what was credited, what people decided, what the policy decided.

Credits take turns within a scope, and each marks the outcomes that it saw with the time at which it did. So the time of
that mark orders first credits as their `credit_seq` does, and places corrections and decisions between them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import groupby, islice
from typing import Any, Final
from uuid import UUID

from evaluation.replay.sums import scaled
from memory.models import Outcome
from memory.models.sql import fetch
from memory.rules.signals import Verdict

CHUNK: Final = 1000  # interactions read at once; bounds memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """A lesson in an interaction."""

    lesson: UUID
    exposure: str
    expected: int  # the expected loss that was stored at the row's own credit, in 10**-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """Outcomes of one interaction that were taken up at once, by one credit."""

    at: datetime
    interaction: UUID
    seq: int  # credit_seq
    task: str  # digest of the normalised text
    b: int  # the judge's usual loss rate before it, in 10**-12
    said: tuple[Verdict, ...]
    exposed: tuple[Exposed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event of the journal."""

    at: datetime
    lesson: UUID
    kind: str  # of TrustEventKind
    seq: int | None  # of a release: the last row credited then
    s: float | None  # of a release to trial: the ledger then
    by_clock: bool
    of_plan: bool  # it belongs to a merge
    is_old: bool  # of an edit: the lesson that was replaced
    undone_at: datetime | None  # of an undo: when the decision was made that it takes back


@dataclass(frozen=True, slots=True, kw_only=True)
class Excused:
    """A person said that a loss was not caused by the lesson, or took that back."""

    at: datetime
    lesson: UUID
    interaction: UUID
    is_back: bool


Event = Credited | Told | Excused

_TOLD: Final = """
    SELECT e.created_at, e.lesson, e.kind,
        coalesce(e.evidence->>'ledger_from_seq', e.evidence->>'released_seq')::bigint, (e.evidence->>'s')::float8,
        e.evidence ? 'clock_hours', e.evidence ? 'plan', e.evidence ? 'successor', a.created_at
    FROM trust_event e
        JOIN lesson l ON l.id = e.lesson
        LEFT JOIN adjudication a ON a.id = (e.evidence->>'undone')::uuid
    WHERE l.account_id IS NOT DISTINCT FROM %s::uuid AND e.created_at <= %s
    ORDER BY e.created_at, e.id
"""
_EXCUSED: Final = """
    SELECT x.created_at, u.lesson_id, u.interaction_id, x.reverts_id IS NOT NULL
    FROM usage_exemption x
        JOIN lesson_usage u ON u.id = x.usage_id
        JOIN lesson l ON l.id = u.lesson_id
    WHERE l.account_id IS NOT DISTINCT FROM %s::uuid AND x.created_at <= %s
    ORDER BY x.created_at, x.id
"""
_EXPOSED: Final = """
    SELECT interaction_id, lesson_id, exposure, expected_loss
    FROM lesson_usage WHERE interaction_id = ANY(%s) ORDER BY 1, 2
"""


def events(account_id: UUID | None, until: datetime) -> Iterator[Event]:
    """Everything of a scope up to `until`, oldest first; of what happened at once, credits before decisions."""
    where = [account_id, until]
    told = (_told(row) for row in fetch(_TOLD, where))
    excused = (
        Excused(at=at, lesson=lesson, interaction=interaction, is_back=back)
        for at, lesson, interaction, back in fetch(_EXCUSED, where)
    )
    return merge(_credits(account_id, until), told, excused, key=lambda event: event.at)


def revisited(account_id: UUID | None) -> dict[UUID, int]:
    """How many outcomes those interactions have that have more than one: their credit may have been corrected."""
    rows = fetch(
        "SELECT o.interaction_id, count(*) FROM outcome o JOIN credit c ON c.interaction_id = o.interaction_id "
        "WHERE c.account_id IS NOT DISTINCT FROM %s::uuid GROUP BY 1 HAVING count(*) > 1",
        [account_id],
    )
    return dict(rows)


def _told(row: Sequence[Any]) -> Told:
    at, lesson, kind, seq, s, by_clock, of_plan, is_old, undone_at = row
    return Told(
        at=at,
        lesson=lesson,
        kind=kind,
        seq=seq,
        s=s,
        by_clock=by_clock,
        of_plan=of_plan,
        is_old=is_old,
        undone_at=undone_at,
    )


def _credits(account_id: UUID | None, until: datetime) -> Iterator[Credited]:
    groups = _groups(account_id, until)
    while chunk := list(islice(groups, CHUNK)):
        exposed: dict[UUID, list[Exposed]] = {}
        for interaction, lesson, exposure, expected in fetch(_EXPOSED, [[c.interaction for c in chunk]]):
            stored = 0 if expected is None else scaled(expected)
            exposed.setdefault(interaction, []).append(Exposed(lesson=lesson, exposure=exposure, expected=stored))
        for c in chunk:
            yield Credited(
                at=c.at,
                interaction=c.interaction,
                seq=c.seq,
                task=c.task,
                b=c.b,
                said=c.said,
                exposed=tuple(exposed.get(c.interaction, ())),
            )


def _groups(account_id: UUID | None, until: datetime) -> Iterator[Credited]:
    """The outcomes by the credit that took them up, without what was handed out."""
    credit = "interaction__credit__"
    rows = (
        Outcome.objects.filter(credited_at__lte=until, **{f"{credit}credit_seq__isnull": False})
        .filter(**{f"{credit}account": account_id} if account_id else {f"{credit}account__isnull": True})
        .order_by("credited_at", f"{credit}credit_seq", "source", "sequence")
        .values_list(
            "credited_at", "interaction_id", f"{credit}credit_seq", f"{credit}task_digest", f"{credit}b",
            "pk", "source", "sequence", "signal",
        )
    )  # fmt: skip
    for (at, interaction), group in groupby(rows.iterator(chunk_size=2 * CHUNK), key=lambda row: (row[0], row[1])):
        own = list(group)
        _, _, seq, task, b, *_ = own[0]
        said = tuple(Verdict(id=row[5], source=row[6], sequence=row[7], signal=row[8]) for row in own)
        yield Credited(at=at, interaction=interaction, seq=seq, task=task, b=scaled(b), said=said)
