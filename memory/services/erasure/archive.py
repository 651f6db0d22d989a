"""What pruning has put aside is within an erasure's reach: merged lessons, their rows, and the plans that name them."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models.sql import execute, fetch
from memory.services.erasure.rows import delete


def archived_lessons(column: str, values: Collection[UUID] | Collection[str]) -> list[UUID]:
    """Lessons that were merged into others, by a column of their row: `source_interaction`, `account_id`, ..."""
    rows = fetch(
        "SELECT lesson FROM prune_archive WHERE kind = 'lesson' AND payload -> 'row' ->> %s = ANY(%s::text[])",
        [column, [str(value) for value in values]],
    )
    return [lesson for (lesson,) in rows]


def forget_archived_rows(interactions: Collection[UUID], counts: Counter[str]) -> None:
    """Archived exposures in these interactions, and archived standings that name them: they are computed anew."""
    ids = [str(i) for i in interactions]
    delete(counts, "prune_archive", "payload -> 'row' ->> 'interaction_id' = ANY(%s::text[])", ids)
    counts["prune_archive (evidence)"] += execute(
        """
        UPDATE prune_archive SET payload = jsonb_set(payload, '{row,evidence}', '{}')
        WHERE kind = 'lesson_standing' AND EXISTS (
            SELECT 1 FROM jsonb_path_query(payload, '$.row.evidence.rows[*].interaction') AS i
            WHERE i #>> '{}' = ANY(%s)
        )
        """,
        [ids],
    )


def forget_plans(lessons: Collection[UUID], counts: Counter[str]) -> None:
    """Plans that name these lessons, with digests of their texts. One that can still be undone keeps the bare ids."""
    ids = [str(lesson) for lesson in lessons]
    undoable = "EXISTS (SELECT 1 FROM prune_archive a WHERE a.plan_id = prune_plan.id)"
    delete(counts, "prune_plan", f"states -> 'lessons' ?| %s::text[] AND NOT {undoable}", ids)
    counts["prune_plan (digests)"] += execute(
        """
        UPDATE prune_plan SET states = jsonb_set(states, '{lessons}', (
            SELECT jsonb_object_agg(id, CASE WHEN id = ANY(%(ids)s) THEN '["", "erased"]' ELSE seen END)
            FROM jsonb_each(states -> 'lessons') AS each(id, seen)
        )) WHERE states -> 'lessons' ?| %(ids)s::text[]
        """,
        {"ids": ids},
    )
