"""Erasing lessons: the text, every copy of it, and what was measured about it."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models import Credit, Lesson, LessonUsage
from memory.models.sql import execute, fetch
from memory.services import sums
from memory.services.credit import contribution
from memory.services.erasure.rows import delete, forget_subjects

SUMS = ("lesson_sum", "lesson_source_sum", "lesson_task_sum", "lesson_pair_sum", "withheld_sum")


def erase_lesson(subject: UUID, counts: Counter[str]) -> None:
    """One lesson, and the wordings that were made from it."""
    erase_lessons([subject], counts)


def erase_lessons(ids: Collection[UUID], counts: Counter[str]) -> None:
    """Lessons with everything derived: later wordings, vectors, exposures, tombstones, journals, contexts."""
    if not ids:
        return
    family = _with_wordings(ids)
    _forget_contexts(family, counts)
    _take_out_of_sums(family)
    usages = "usage_id IN (SELECT id FROM lesson_usage WHERE lesson_id = ANY(%s))"
    delete(counts, "usage_exemption", f"reverts_id IS NOT NULL AND {usages}", family)
    delete(counts, "usage_exemption", usages, family)
    delete(counts, "lesson_usage", "lesson_id = ANY(%s)", family)
    for table in SUMS:
        delete(counts, table, "lesson_id = ANY(%s)", family)
    delete(counts, "lesson_pair_sum", "other_id = ANY(%s)", family)
    delete(counts, "lesson_standing", "lesson_id = ANY(%s)", family)
    delete(counts, "lesson_embedding", "lesson_id = ANY(%s)", family)
    delete(counts, "lesson_tombstone", "source_lesson = ANY(%s)", family)
    delete(counts, "trust_event", "lesson = ANY(%s)", family)
    delete(counts, "contradiction", "first = ANY(%s)", family)
    delete(counts, "contradiction", "second = ANY(%s)", family)
    delete(counts, "prune_archive", "lesson = ANY(%s)", family)
    _close_distillations(family)
    forget_subjects(counts, family)
    execute("UPDATE lesson_tombstone SET successor_lesson = NULL WHERE successor_lesson = ANY(%s)", [family])
    delete(counts, "lesson", "id = ANY(%s)", family)


def _with_wordings(ids: Collection[UUID]) -> list[UUID]:
    """The lessons and every later wording made from one of them: an edited text is a copy of the first."""
    rows = fetch(
        """
        WITH RECURSIVE family(id) AS (
            SELECT unnest(%s::uuid[])
            UNION SELECT l.id FROM lesson l JOIN family ON l.supersedes = family.id
        ) SELECT id FROM family ORDER BY id
        """,
        [list(ids)],
    )
    return [pk for (pk,) in rows]


def _forget_contexts(ids: list[UUID], counts: Counter[str]) -> None:
    """The text as it was pasted into prompts, and in answers that are kept for a replay."""
    handed = [
        pk for (pk,) in fetch("SELECT DISTINCT interaction_id FROM lesson_usage WHERE lesson_id = ANY(%s)", [ids])
    ]
    counts["interaction (retrieved_context)"] += execute(
        "UPDATE interaction SET retrieved_context = '' WHERE id = ANY(%s) AND retrieved_context <> ''", [handed]
    )
    delete(counts, "idempotency_record", "response ->> 'id' = ANY(%s::text[])", [str(i) for i in handed])


def _take_out_of_sums(ids: list[UUID]) -> None:
    """The lessons leave their cohorts: pair sums with them go; what the others share stays as it is."""
    gone = set(ids)
    interactions = LessonUsage.objects.filter(lesson_id__in=ids).values("interaction_id")
    for row in Credit.objects.filter(pk__in=interactions, outcome__isnull=False).select_related("outcome"):
        assert row.outcome is not None
        usages = list(LessonUsage.objects.filter(interaction_id=row.pk).order_by("lesson_id"))
        sums.take_back(contribution(row, row.outcome, usages))
        sums.add(contribution(row, row.outcome, [u for u in usages if u.lesson_id not in gone]))


def _close_distillations(ids: list[UUID]) -> None:
    """The interaction that a lesson was learned from is not asked for it again."""
    execute(
        "UPDATE lesson_distillation SET state = 'cancelled', result_reason = 'cancelled_by_operator', lesson = NULL "
        "WHERE lesson = ANY(%s)",
        [ids],
    )


def of_account(account_id: UUID) -> list[UUID]:
    """The lessons that belong to an account."""
    return list(Lesson.objects.filter(account_id=account_id).values_list("pk", flat=True))
