"""Reading a lesson's evidence as it stands now. Writes nothing."""

from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import NotFound
from memory.models import Lesson, LessonEmbedding
from memory.models.scope import scoped
from memory.models.sql import fetch, vector_literal
from memory.models.vocabulary import LessonState
from memory.rules.standing import standing_in_words
from memory.search.semantic import prepare_session
from memory.services.policies import policy
from memory.services.quarantine import held_by_person
from memory.services.scoping import lesson_account


def lesson_for(account_id: UUID, lesson_id: UUID) -> Lesson:
    """The lesson, if this account may see it. Raises NotFound."""
    lesson = Lesson.objects.filter(scoped(lesson_account(account_id)), pk=lesson_id).first()
    if lesson is None:
        raise NotFound("There is no such lesson in your scope.")
    return lesson


def evidence_of(lesson: Lesson, by_person: bool | None = None) -> dict[str, Any]:
    """The lesson's standing, computed now from its rows: gates, losses, counts and the standing in sentences.

    `by_person` says whether a person put it into its quarantine, where the caller knows.
    """
    if by_person is None:
        by_person = lesson.state == LessonState.QUARANTINED and held_by_person(lesson.pk)
    ((record, assessment),) = policy().assess([lesson.pk], lesson.account_id)
    evidence = assessment.evidence
    return {
        **evidence,
        "lesson": lesson.pk,
        "state": lesson.state,
        "quarantined_at": record.quarantined_at,
        "on_trial": assessment.on_trial,
        "words": standing_in_words(
            lesson.state,
            wins=record.wins,
            losses=record.losses,
            evidence=evidence,
            on_trial=assessment.on_trial,
            by_person=by_person,
        ),
    }


@transaction.atomic
def neighbours_of(lesson: Lesson, limit: int = 10) -> list[dict[str, Any]]:
    """The most similar live lessons of the same scope, by cosine in the active space; empty without a vector."""
    own = LessonEmbedding.objects.filter(lesson=lesson, space__is_active=True).select_related("space").first()
    if own is None:
        return []
    space = own.space
    column = f"embedding::halfvec({space.dimension})"
    vector = vector_literal(own.embedding)
    prepare_session()  # else the index gives up before it has met enough rows of this account
    rows = fetch(
        f"""
            WITH near AS MATERIALIZED (
                SELECT lesson_id, {column} <=> %s::halfvec AS distance FROM lesson_embedding
                WHERE space_id = '{space.pk}' AND state = 'active' AND account_id IS NOT DISTINCT FROM %s
                ORDER BY {column} <=> %s::halfvec LIMIT %s
            )
            SELECT l.id, l.text, l.state, 1 - near.distance FROM near JOIN lesson l ON l.id = near.lesson_id
            WHERE l.id <> %s ORDER BY near.distance, l.id LIMIT %s
            """,
        [vector, lesson.account_id, vector, limit + 1, lesson.pk, limit],
    )
    return [{"id": pk, "text": text, "state": state, "similarity": similarity} for pk, text, state, similarity in rows]
