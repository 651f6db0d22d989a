"""Erasing interactions, and everything that came from them."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models import Interaction, Preference
from memory.models.sql import execute, fetch
from memory.services.erasure.archive import forget_archived_rows
from memory.services.erasure.companions import Touched, evaluate
from memory.services.erasure.lesson import erase_lessons, learned_from
from memory.services.erasure.preference import erase_preferences
from memory.services.erasure.rows import (
    delete,
    forget_answers,
    forget_decisions,
    forget_subjects,
    hold,
    scrub_journals,
)
from memory.services.standing import subtract

BATCH = 500


def erase_interaction(subject: UUID, counts: Counter[str]) -> None:
    """One interaction."""
    erase_interactions([subject], counts)


def erase_interactions(ids: Collection[UUID], counts: Counter[str]) -> None:
    """Interactions, batch by batch, with the lessons learned from them and every trace in journals and summaries."""
    waiting = sorted(ids)
    touched: Touched = set()
    for start in range(0, len(waiting), BATCH):
        touched |= _batch(waiting[start : start + BATCH], counts)
    evaluate(touched)


def _batch(ids: list[UUID], counts: Counter[str]) -> Touched:
    """Erases some; returns the lessons whose evidence moved."""
    hold("interaction", ids)
    hold("preference", Preference.objects.filter(source_interaction__in=ids).values_list("pk", flat=True))
    touched = erase_lessons(learned_from(ids), counts)
    touched |= _judged_in(ids)
    subtract(ids)
    _forget_answers(ids, counts)
    delete(counts, "lesson_tombstone", "source_interaction = ANY(%s)", ids)
    delete(counts, "lesson_distillation", "interaction_id = ANY(%s)", ids)
    _forget_excuses(ids, counts)
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
    return touched


def _judged_in(ids: list[UUID]) -> Touched:
    """The lessons that have a credited exposure in these interactions."""
    rows = fetch(
        "SELECT DISTINCT c.account_id, u.lesson_id FROM credit c JOIN lesson_usage u USING (interaction_id) "
        "WHERE interaction_id = ANY(%s)",
        [ids],
    )
    return {(account_id, lesson) for account_id, lesson in rows}


def _forget_excuses(ids: list[UUID], counts: Counter[str]) -> None:
    """Why a person said that a loss in one of the interactions was not a lesson's fault."""
    rows = fetch("SELECT id::text FROM lesson_usage WHERE interaction_id = ANY(%s)", [ids])
    usages = [usage for (usage,) in rows]
    forget_decisions(counts, "d.before ->> 'usage' = ANY(%s)", usages)
    counts["trust_event (excuses)"] += execute(
        "UPDATE trust_event SET evidence = evidence - '{usage,reason}'::text[] WHERE evidence ->> 'usage' = ANY(%s)",
        [usages],
    )


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


def of_project(project_id: UUID) -> list[UUID]:
    """The interactions of a project."""
    return list(Interaction.objects.filter(project_id=project_id).values_list("pk", flat=True))
