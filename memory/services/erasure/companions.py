"""Lessons that stay and were judged together with what is erased: their evidence is another without it."""

from collections.abc import Collection, Iterable
from uuid import UUID

from memory.models import Lesson
from memory.models.sql import fetch
from memory.services import quarantine
from memory.services.rejection import looked_at

Touched = set[tuple[UUID | None, UUID]]  # scope of the sums, and a lesson whose evidence moved
BATCH = 200  # lessons judged at once


def companions(lessons: Collection[UUID]) -> Touched:
    """Who was handed out together with these lessons in work that was scored."""
    rows = fetch(
        """
        SELECT DISTINCT c.account_id, v.lesson_id
        FROM lesson_usage u
            JOIN lesson_usage v ON v.interaction_id = u.interaction_id AND NOT v.lesson_id = ANY(%(ids)s)
            JOIN credit c ON c.interaction_id = u.interaction_id
        WHERE u.lesson_id = ANY(%(ids)s) AND c.outcome_id IS NOT NULL
            AND u.exposure IN ('served', 'probation') AND v.exposure IN ('served', 'probation')
        """,
        {"ids": list(lessons)},
    )
    return {(account_id, lesson) for account_id, lesson in rows}


def evaluate(touched: Iterable[tuple[UUID | None, UUID]]) -> None:
    """Standings without what was erased. What was quarantined because of it may go free, as after a correction."""
    scopes: dict[UUID | None, set[UUID]] = {}
    for account_id, lesson in touched:
        scopes.setdefault(account_id, set()).add(lesson)
    for account_id, lessons in scopes.items():
        alive = list(Lesson.objects.filter(pk__in=lessons).order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(alive), BATCH):
            quarantine.evaluate(dict.fromkeys(alive[start : start + BATCH], looked_at()), account_id)
