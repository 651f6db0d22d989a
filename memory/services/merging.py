"""One lesson's evidence becomes another's, to the last row, and can be given back.

A lesson has one row for an interaction. Where both have one, one of the two counts, and the other goes to the archive.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from memory.models import Lesson, LessonEmbedding, LessonStanding, LessonUsage, PruneArchive, PrunePlan
from memory.models.sql import execute, fetch
from memory.models.vocabulary import COHORT
from memory.rules.pruning import Exposed, counted
from memory.services.standing import SUMS

LESSON, EMBEDDING, STANDING = "lesson", "lesson_embedding", "lesson_standing"
DROPPED = "dropped"  # a row of the merged lesson that did not count beside the keeper's
DISPLACED = "displaced"  # a row of the keeper that did not count beside the merged lesson's
MOVED = "moved"  # ids of the rows that became the keeper's
GENERATED: Final = {"search"}  # PostgreSQL computes it again
# What an interaction's credit writes to all of its rows alike.
CREDITED: Final = (
    "credited_outcome_id", "outcome_signal", "reward", "outcome_source", "outcome_at", "weight", "credit_seq",
)  # fmt: skip
EXPECTED: Final = ("expected_loss", "source_rate", "task_factor", "peer_factor", "niche_factor")
BY_LESSON: Final = ("lesson_sum", "lesson_source_sum", "lesson_task_sum", "withheld_sum")


class Exempted(Exception):
    """A person's word stands on a row that would have to go: both lessons have one, and both may be meant."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """An interaction in which both lessons have a row."""

    interaction: UUID
    keeper: UUID  # usage row
    member: UUID  # usage row
    counts: str  # whose row counts: keeper or member


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge moved."""

    moved: int  # rows that became the keeper's
    shared: int  # interactions in which both had a row
    beside: frozenset[UUID]  # lessons handed out in these: their cohort has one lesson less


def merge(plan: PrunePlan, keeper: UUID, member: UUID, expires_at: datetime) -> Merged:
    """Makes the member's evidence the keeper's, and deletes the member; its rows go to the plan's archive.

    Runs under the scope's lock. Raises Exempted, and has changed nothing then.
    """
    shared = _shared(keeper, member)
    beside = _beside([s.interaction for s in shared], {keeper, member})
    dropped = [s.member for s in shared if s.counts == "keeper"]
    displaced = {s.keeper: s.member for s in shared if s.counts == "member"}
    archive = _Archive(plan=plan, lesson=member, expires_at=expires_at)
    archive.rows(LESSON, "SELECT to_jsonb(t) FROM lesson t WHERE id = %s", [member])
    archive.rows(EMBEDDING, "SELECT to_jsonb(t) FROM lesson_embedding t WHERE lesson_id = %s", [member])
    archive.rows(STANDING, "SELECT to_jsonb(t) FROM lesson_standing t WHERE lesson_id = %s", [member])
    archive.rows(DROPPED, "SELECT to_jsonb(t) FROM lesson_usage t WHERE id = ANY(%s)", [dropped])
    for row in _json_rows("SELECT to_jsonb(t) FROM lesson_usage t WHERE id = ANY(%s)", [list(displaced)]):
        archive.add(DISPLACED, {"row": row, "by": str(displaced[UUID(row["id"])])})
    LessonUsage.objects.filter(pk__in=[*dropped, *displaced]).delete()
    moving = LessonUsage.objects.filter(lesson=member)
    archive.add(MOVED, {"rows": [str(pk) for pk in moving.values_list("pk", flat=True)]})
    moved = moving.update(lesson=keeper)
    archive.write()
    Lesson.objects.filter(pk=member).delete()
    rebuild([keeper])
    return Merged(moved=moved, shared=len(shared), beside=beside)


def _shared(keeper: UUID, member: UUID) -> list[Shared]:
    exempted = "EXISTS (SELECT 1 FROM usage_exemption x WHERE x.usage_id = {}.id)"
    found = []
    for interaction, k, k_exposure, k_exempted, m, m_exposure, m_exempted in fetch(
        f"""
        SELECT k.interaction_id, k.id, k.exposure, {exempted.format("k")}, m.id, m.exposure, {exempted.format("m")}
        FROM lesson_usage m JOIN lesson_usage k ON k.interaction_id = m.interaction_id AND k.lesson_id = %s
        WHERE m.lesson_id = %s
        """,
        [keeper, member],
    ):
        counts = counted(
            Exposed(handed_out=k_exposure in COHORT, exempted=k_exempted),
            Exposed(handed_out=m_exposure in COHORT, exempted=m_exempted),
        )
        if (m_exempted and counts == "keeper") or (k_exempted and counts == "member"):
            raise Exempted
        found.append(Shared(interaction=interaction, keeper=k, member=m, counts=counts))
    return found


def _beside(interactions: Sequence[UUID], but: set[UUID]) -> frozenset[UUID]:
    others = LessonUsage.objects.filter(interaction__in=interactions, exposure__in=COHORT).exclude(lesson__in=but)
    return frozenset(others.values_list("lesson_id", flat=True))


def rebuild(lessons: Iterable[UUID]) -> None:
    """Computes the sums of lessons anew from their rows: theirs alone, with each other lesson, and withheld."""
    for lesson in lessons:
        for table in BY_LESSON:
            _rebuild(table, "lesson_id", lesson)
        for side in ("lesson_id", "other_id"):
            _rebuild("lesson_pair_sum", side, lesson)


def _rebuild(table: str, side: str, lesson: UUID) -> None:
    key, values, statement = SUMS[table]
    columns = ", ".join((*key, *values))
    execute(f"DELETE FROM {table} WHERE {side} = %s", [lesson])
    execute(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM ({statement}) AS n({columns}) WHERE {side} = %s",
        [lesson],
    )


class _Archive:
    """Rows on their way to the archive."""

    def __init__(self, *, plan: PrunePlan, lesson: UUID, expires_at: datetime) -> None:
        self._plan, self._lesson, self._expires_at = plan, lesson, expires_at
        self._rows: list[PruneArchive] = []

    def add(self, kind: str, payload: Mapping[str, Any]) -> None:
        self._rows.append(
            PruneArchive(plan=self._plan, lesson=self._lesson, kind=kind, payload=payload, expires_at=self._expires_at)
        )

    def rows(self, kind: str, statement: str, params: Sequence[Any]) -> None:
        for row in _json_rows(statement, params):
            self.add(kind, {"row": row})

    def write(self) -> None:
        PruneArchive.objects.bulk_create(self._rows)


def _json_rows(statement: str, params: Sequence[Any]) -> list[dict[str, Any]]:
    return [json.loads(row) if isinstance(row, str) else row for (row,) in fetch(statement, params)]


def unmerge(plan: PrunePlan, lesson: UUID) -> frozenset[UUID]:
    """Puts a merged lesson back with its rows; returns the lessons that had them meanwhile.

    What has been credited, corrected or erased since is as it is now. Runs under the scope's lock.
    """
    archived: dict[str, list[dict[str, Any]]] = {}
    for kind, payload in PruneArchive.objects.filter(plan=plan, lesson=lesson).values_list("kind", "payload"):
        archived.setdefault(kind, []).append(payload)
    for kind in (LESSON, EMBEDDING, STANDING):
        for payload in archived.get(kind, ()):
            _insert(kind, payload["row"])
    owners: set[UUID] = set()
    for payload in archived.get(DISPLACED, ()):
        if twin := LessonUsage.objects.filter(pk=payload["by"]).first():
            twin_owner = twin.lesson_id
            LessonUsage.objects.filter(pk=twin.pk).update(lesson=lesson)
            _insert_usage(payload["row"], twin_owner, twin)
            owners.add(twin_owner)
    for payload in archived.get(MOVED, ()):
        rows = LessonUsage.objects.filter(pk__in=payload["rows"]).exclude(lesson=lesson)
        owners |= set(rows.values_list("lesson_id", flat=True).distinct())
        rows.update(lesson=lesson)
    for payload in archived.get(DROPPED, ()):
        twin = LessonUsage.objects.filter(interaction=payload["row"]["interaction_id"]).first()
        if twin is not None:
            _insert_usage(payload["row"], lesson, twin)
    PruneArchive.objects.filter(plan=plan, lesson=lesson).delete()
    rebuild([lesson, *owners])
    return frozenset(owners)


def _insert_usage(row: dict[str, Any], lesson: UUID, twin: LessonUsage) -> None:
    """An archived row, with what its interaction's credit came to since: all rows of an interaction share that."""
    credited = {name: getattr(twin, name) for name in CREDITED}
    expected = {name: getattr(twin, name) for name in EXPECTED if row[name] is None}
    _insert("lesson_usage", {**row, **credited, **expected, "lesson_id": lesson})


_COLUMNS: Final = {
    model._meta.db_table: [str(f.column) for f in model._meta.concrete_fields if f.column not in GENERATED]
    for model in (Lesson, LessonEmbedding, LessonStanding, LessonUsage)
}


def _insert(table: str, row: Mapping[str, Any]) -> None:
    columns = ", ".join(_COLUMNS[table])
    execute(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_record(NULL::{table}, %s::jsonb)",
        [json.dumps(row, default=str)],
    )
