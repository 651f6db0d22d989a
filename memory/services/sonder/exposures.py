"""Which lessons were handed out for which work."""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db.models import Count

from memory.models import Credit, LessonUsage
from memory.models.base import new_id
from memory.models.vocabulary import Exposure
from memory.services.scoping import lock_scope
from memory.services.sonder import values
from memory.services.sonder.job import Job, each, following
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import Skipped

UNRANKED: Final = 0.0  # the old store kept no scores


def usage(job: Job, rows: Sequence[Row]) -> None:
    """Rows of the exposure log. What came of them is credited from the outcomes, not copied.

    Work that has been scored is left alone: its evidence is what was known of it then.
    """
    lock_scope(job.scope)  # nothing is scored between the look and the insert
    known = {
        "lesson": job.known("lesson", (row.get("lesson_id") for row in rows)),
        "interaction": job.known("interaction", (row.get("interaction_id") for row in rows)),
    }
    works = {found.subject for found in known["interaction"].values() if found.alive}
    scored = set(Credit.objects.filter(pk__in=works).values_list("pk", flat=True))
    there = set(LessonUsage.objects.filter(interaction__in=works).values_list("lesson_id", "interaction_id"))
    ranks = Counter[UUID](
        dict(
            LessonUsage.objects.filter(interaction__in=works)
            .values_list("interaction_id")
            .annotate(n=Count("pk"))
            .order_by()
        )
    )
    new: dict[tuple[UUID, UUID], LessonUsage] = {}

    def take(row: Row) -> bool:
        work = following(known["interaction"], values.ident(row.get("interaction_id")))
        lesson = following(known["lesson"], values.ident(row.get("lesson_id")))
        at = values.moment(row.get("ts"), job.now)
        if (lesson, work) in there:
            return False
        if (lesson, work) in new:
            raise Skipped("same_lesson")  # two lessons of the file are one here
        if work in scored:
            raise Skipped("scored_without")
        ranks[work] += 1
        new[lesson, work] = _row(lesson, work, ranks[work])
        new[lesson, work].created_at = at
        return True

    each(job, "lesson_usage", rows, take, "interaction_id")
    LessonUsage.objects.bulk_create(new.values())


def _row(lesson: UUID, work: UUID, rank: int) -> LessonUsage:
    """Handed out for certain: the old store tossed no coins. Lessons were written down in the order of their rank."""
    return LessonUsage(
        id=new_id(),
        lesson_id=lesson,
        interaction_id=work,
        exposure=Exposure.SERVED.value,
        rank=rank,
        fused_score=UNRANKED,
        probability=1.0,
    )
