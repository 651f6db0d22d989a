"""Erasing lessons: the text, every copy of it, and what was measured about it."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from memory.models import Lesson, LessonTombstone
from memory.models.sql import execute, fetch
from memory.services.erasure.archive import archived_lessons, forget_plans
from memory.services.erasure.companions import Touched, companions, evaluate
from memory.services.erasure.rows import delete, forget_answers, forget_subjects, hold, scrub_names

SUMS = ("lesson_sum", "lesson_source_sum", "lesson_task_sum", "lesson_pair_sum", "withheld_sum")


def erase_lesson(subject: UUID, counts: Counter[str]) -> None:
    """One lesson, and the wordings that were made from it."""
    evaluate(erase_lessons([subject], counts))


def erase_lessons(ids: Collection[UUID], counts: Counter[str]) -> Touched:
    """Lessons with everything derived: later wordings, vectors, exposures, tombstones, journals, contexts.

    Returns the lessons to evaluate anew: what was handed out beside the erased ones had peers that are gone. Only the
    sums of the erased lessons and their pairs go: what the others share, and the interactions, are as they were.
    """
    if not ids:
        return set()
    hold("lesson", ids)  # before the wordings: one that is being made from these is waited for
    family = _with_wordings(ids)
    hold("lesson", family)
    _forget_contexts(family, counts)
    touched = companions(family)
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
    scrub_names(counts, family)
    _forget_contradictions(family, counts)
    delete(counts, "prune_archive", "lesson = ANY(%s)", family)
    forget_plans(family, counts)
    _close_distillations(family)
    forget_subjects(counts, family)
    execute("UPDATE lesson_tombstone SET successor_lesson = NULL WHERE successor_lesson = ANY(%s)", [family])
    delete(counts, "lesson", "id = ANY(%s)", family)
    return touched


def _with_wordings(ids: Collection[UUID]) -> list[UUID]:
    """The lessons and every later wording made from one of them, also merged ones: an edited text is a copy."""
    rows = fetch(
        """
        WITH RECURSIVE wording(id, made_from) AS (
            SELECT id, unnest(ARRAY[supersedes, also_supersedes]) FROM lesson WHERE supersedes IS NOT NULL
            UNION ALL SELECT lesson, (payload -> 'row' ->> of)::uuid FROM prune_archive
                CROSS JOIN unnest(ARRAY['supersedes', 'also_supersedes']) AS of WHERE kind = 'lesson'
        ), family(id) AS (
            SELECT unnest(%s::uuid[])
            UNION SELECT w.id FROM wording w JOIN family ON w.made_from = family.id
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
    handed += _handed_before_merging(ids)
    counts["interaction (retrieved_context)"] += execute(
        "UPDATE interaction SET retrieved_context = '' WHERE id = ANY(%s) AND retrieved_context <> ''", [handed]
    )
    forget_answers(counts, [*handed, *ids])


def _handed_before_merging(ids: list[UUID]) -> list[UUID]:
    """Where lessons that were merged away were handed out: their exposures are others' now, the contexts name them."""
    merged = set(ids) - set(Lesson.objects.filter(pk__in=ids).values_list("pk", flat=True))
    if not merged:
        return []
    named = [f"%{lesson}%" for lesson in sorted(merged)]
    return [pk for (pk,) in fetch("SELECT id FROM interaction WHERE retrieved_context LIKE ANY(%s)", [named])]


def _forget_contradictions(ids: list[UUID], counts: Counter[str]) -> None:
    """What was asked and said about pairs with one of the lessons, and the pairs."""
    pairs = [pk for (pk,) in fetch("SELECT id FROM contradiction WHERE ARRAY[first, second] && %s::uuid[]", [ids])]
    forget_subjects(counts, pairs)
    delete(counts, "contradiction", "id = ANY(%s)", pairs)


def _close_distillations(ids: list[UUID]) -> None:
    """The interaction that a lesson was learned from is not asked for it again."""
    execute(
        "UPDATE lesson_distillation SET state = 'cancelled', result_reason = 'cancelled_by_operator', lesson = NULL "
        "WHERE lesson = ANY(%s)",
        [ids],
    )


def of_account(account_id: UUID) -> list[UUID]:
    """The lessons that belong to an account, merged ones among them."""
    own = list(Lesson.objects.filter(account_id=account_id).values_list("pk", flat=True))
    return [*own, *archived_lessons("account_id", [account_id])]


def learned_from(interactions: Collection[UUID]) -> list[UUID]:
    """The lessons that came from these interactions, merged ones among them."""
    own = list(Lesson.objects.filter(source_interaction__in=interactions).values_list("pk", flat=True))
    # A tombstone remembers where its lesson came from after the archive has let go of it.
    buried = LessonTombstone.objects.filter(source_interaction__in=interactions).values_list("source_lesson", flat=True)
    return list({*own, *buried, *archived_lessons("source_interaction", interactions)})
