"""Erasing interactions, and everything that came from them."""

from collections import Counter
from collections.abc import Collection
from decimal import Decimal
from uuid import UUID

from memory.models import Credit, Interaction, Lesson, LessonUsage, Preference
from memory.models.sql import execute, fetch
from memory.services import quarantine, sums
from memory.services.credit import contribution
from memory.services.erasure.archive import forget_archived_rows
from memory.services.erasure.lesson import erase_lessons, learned_from
from memory.services.erasure.preference import erase_preferences
from memory.services.erasure.rows import delete, forget_answers, forget_subjects, hold, scrub_journals
from memory.services.evidence import Occasion

BATCH = 500


def erase_interaction(subject: UUID, counts: Counter[str]) -> None:
    """One interaction."""
    erase_interactions([subject], counts)


def erase_interactions(ids: Collection[UUID], counts: Counter[str]) -> None:
    """Interactions, batch by batch, with the lessons learned from them and every trace in journals and summaries."""
    waiting = sorted(ids)
    for start in range(0, len(waiting), BATCH):
        _batch(waiting[start : start + BATCH], counts)


def _batch(ids: list[UUID], counts: Counter[str]) -> None:
    hold("interaction", ids)
    hold("preference", Preference.objects.filter(source_interaction__in=ids).values_list("pk", flat=True))
    erase_lessons(learned_from(ids), counts)
    touched = _take_back(ids)
    _forget_answers(ids, counts)
    delete(counts, "lesson_tombstone", "source_interaction = ANY(%s)", ids)
    delete(counts, "lesson_distillation", "interaction_id = ANY(%s)", ids)
    usages = "usage_id IN (SELECT id FROM lesson_usage WHERE interaction_id = ANY(%s))"
    delete(counts, "usage_exemption", f"reverts_id IS NOT NULL AND {usages}", ids)
    delete(counts, "usage_exemption", usages, ids)
    for table in ("lesson_usage", "credit", "outcome"):
        delete(counts, table, "interaction_id = ANY(%s)", ids)
    _forget_preferences(ids, counts)
    _forget_summaries(ids, counts)
    forget_subjects(counts, ids)
    forget_archived_rows(ids, counts)
    scrub_journals(counts, ids)
    delete(counts, "interaction", "id = ANY(%s)", ids)
    _evaluate(touched)


def _take_back(ids: list[UUID]) -> dict[UUID | None, set[UUID]]:
    """Takes the interactions out of every sum; returns the lessons concerned by scope."""
    touched: dict[UUID | None, set[UUID]] = {}
    for row in Credit.objects.filter(pk__in=ids).select_related("outcome").order_by("credit_seq"):
        usages = list(LessonUsage.objects.filter(interaction_id=row.pk).order_by("lesson_id"))
        if row.outcome is not None:
            sums.take_back(contribution(row, row.outcome, usages))
        touched.setdefault(row.account_id, set()).update(u.lesson_id for u in usages)
    return touched


def _forget_answers(ids: list[UUID], counts: Counter[str]) -> None:
    """Kept answers to requests hold the task's lessons, and the answer to a PATCH holds the response."""
    outcomes = [pk for (pk,) in fetch("SELECT id FROM outcome WHERE interaction_id = ANY(%s)", [ids])]
    forget_answers(counts, [*ids, *outcomes])


def _forget_preferences(ids: list[UUID], counts: Counter[str]) -> None:
    """A preference that was first said in one of the interactions."""
    erase_preferences(
        [pk for (pk,) in fetch("SELECT id FROM preference WHERE source_interaction = ANY(%s)", [ids])], counts
    )


def _forget_summaries(ids: list[UUID], counts: Counter[str]) -> None:
    """A summary of a session may tell of any of its turns, so it is emptied and made anew from what stays."""
    sessions = [
        pk
        for (pk,) in fetch(
            "SELECT DISTINCT session_id FROM interaction WHERE id = ANY(%s) AND session_id IS NOT NULL", [ids]
        )
    ]
    forget_answers(counts, sessions)
    delete(counts, "session_project_summary", "session_id = ANY(%s)", sessions)
    counts["session (summary)"] += execute(
        "UPDATE session SET summary = '', title = '', summarized_through_id = NULL "
        "WHERE id = ANY(%s) AND (summary <> '' OR title <> '' OR summarized_through_id IS NOT NULL)",
        [sessions],
    )


def _evaluate(touched: dict[UUID | None, set[UUID]]) -> None:
    """Standings without the erased rows. What was quarantined because of them may go free, as after a correction."""
    for account_id, lessons in touched.items():
        alive = Lesson.objects.filter(pk__in=lessons).values_list("pk", flat=True)
        occasion = Occasion(exposure="served", weight=Decimal(0), loss=None, weight_before=Decimal(1))
        quarantine.evaluate(dict.fromkeys(alive, occasion), account_id)


def of_project(project_id: UUID) -> list[UUID]:
    """The interactions of a project."""
    return list(Interaction.objects.filter(project_id=project_id).values_list("pk", flat=True))
