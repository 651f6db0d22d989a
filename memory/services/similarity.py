"""Which lessons and tombstones say the same: near vectors of one space, and the same claim. Reads only.

The vector alone never decides: "always retry" and "never retry" lie nearer to each other than most paraphrases do.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.embedding import Vectors
from memory.models import EmbeddingSpace, Lesson
from memory.models.sql import fetch, vector_literal
from memory.rules.claim import ClaimSignature, same_claim
from memory.search import Scope
from memory.search.semantic import prepare_session, semantic
from memory.services import tombstone
from memory.services.pairs import Where, is_small

# Lessons looked at around a text. Opposites of it may be nearer than what repeats it, so that a few are not enough.
NEAREST = 50


@dataclass(frozen=True, kw_only=True)
class Near:
    """A lesson near a vector."""

    lesson: UUID
    cosine: float  # in [-1, 1]
    claim: ClaimSignature


def stored_claim(polarity: Mapping[str, int], anchors: Mapping[str, Sequence[str]]) -> ClaimSignature:
    """The signature in a lesson's two columns."""
    return ClaimSignature.from_json({"polarity": dict(polarity), "anchors": {k: list(v) for k, v in anchors.items()}})


def near_lessons(vector: Vectors, account_id: UUID | None, space: EmbeddingSpace, at_least: float) -> list[Near]:
    """Lessons of one scope that wait, are served or are quarantined, with a cosine of `at_least`; nearest first.

    All of them in a scope that is small enough to be compared one by one; else at most NEAREST of those in service,
    the quarantined among as many, and all that wait.
    """
    if is_small(Where(space=space, account_id=account_id)):
        cosines = _compared(vector, account_id, space, at_least, ("candidate", "active", "quarantined"))
    else:
        hits = semantic(space, vector, Scope(account_id=account_id, reviewed_only=False), NEAREST)
        cosines = {hit.lesson_id: hit.cosine for hit in hits if hit.cosine >= at_least}
        # No vector index has those that wait, and reviewers keep them few.
        cosines |= _compared(vector, account_id, space, at_least, ("candidate",))
    found = Lesson.objects.filter(pk__in=cosines).values_list("pk", "polarity", "anchors")
    near = [
        Near(lesson=pk, cosine=cosines[pk], claim=stored_claim(polarity, anchors)) for pk, polarity, anchors in found
    ]
    return sorted(near, key=lambda n: (-n.cosine, n.lesson))


def _compared(
    vector: Vectors, account_id: UUID | None, space: EmbeddingSpace, at_least: float, states: Sequence[str]
) -> dict[UUID, float]:
    """Cosines of the near lessons in these states, compared one by one: without the cast no vector index is used."""
    rows: list[tuple[Any, ...]] = fetch(
        f"""
        SELECT lesson_id, 1 - distance FROM (
            SELECT lesson_id, embedding <=> %s::halfvec AS distance FROM lesson_embedding
            WHERE space_id = %s AND state = ANY(%s) AND {_within(account_id)}
        ) AS compared WHERE distance <= %s
        """,
        [vector_literal(vector.tolist()), space.pk, list(states), *_params(account_id), 1 - at_least],
    )
    return dict(rows)


def _within(account_id: UUID | None) -> str:
    """IS NOT DISTINCT FROM would say the same and use no index."""
    return "account_id IS NULL" if account_id is None else "account_id = %s"


def _params(account_id: UUID | None) -> list[UUID]:
    return [] if account_id is None else [account_id]


def semantic_duplicate(
    vector: Vectors,
    signature: ClaimSignature,
    account_id: UUID | None,
    space: EmbeddingSpace,
    skip: Collection[UUID] = (),
) -> UUID | None:
    """The nearest lesson of the scope, but for `skip`, that says the same already; None if there is none.

    `vector` is the text's unit vector in `space`. The lesson's cosine is at least the space's duplicate_similarity.
    """
    near = near_lessons(vector, account_id, space, space.duplicate_similarity)
    return next((n.lesson for n in near if n.lesson not in skip and same_claim(signature, n.claim).same), None)


def matching_tombstone(
    vector: Vectors,
    signature: ClaimSignature,
    account_id: UUID | None,
    space: EmbeddingSpace,
    skip_successors: Collection[UUID] = (),
) -> UUID | None:
    """The nearest tombstone of the scope whose value a text repeats; None if there is none.

    Its cosine is at least the space's tombstone_similarity, and it made the same claim, or its signature cannot be
    read. What `skip_successors` have replaced does not refuse it: their own new wording is near that by nature.
    """
    rows = fetch(
        f"""
        SELECT id FROM (
            SELECT id, embedding <=> %s::halfvec AS distance FROM lesson_tombstone
            WHERE space_id = %s AND {_within(account_id)}
                AND (successor_lesson IS NULL OR successor_lesson <> ALL(%s::uuid[]))
        ) AS buried WHERE distance <= %s ORDER BY distance, id
        """,
        [
            vector_literal(vector.tolist()),
            space.pk,
            *_params(account_id),
            list(skip_successors),
            1 - space.tombstone_similarity,
        ],
    )
    return tombstone.first_conflict([pk for (pk,) in rows], signature)


def cosine_of(one: UUID, other: UUID) -> float | None:
    """Of two lessons, in the active space or else in another that has both; None where no space has."""
    rows = fetch(
        """
        SELECT 1 - (k.embedding <=> m.embedding) FROM lesson_embedding k
            JOIN lesson_embedding m ON m.space_id = k.space_id AND m.lesson_id = %s
            JOIN embedding_space s ON s.id = k.space_id
        WHERE k.lesson_id = %s ORDER BY s.is_active DESC LIMIT 1
        """,
        [one, other],
    )
    return min(1.0, float(rows[0][0])) if rows else None


def near_tombstones(space: EmbeddingSpace, after: UUID, limit: int) -> list[tuple[UUID, list[UUID]]]:
    """The next tombstones in the order of their ids, each with the active lessons near it, but for its successor."""
    column = f"embedding::halfvec({space.dimension})"
    with transaction.atomic():
        prepare_session()
        rows = fetch(
            f"""
            SELECT t.id, array_remove(array_agg(n.lesson_id), NULL) FROM (
                SELECT * FROM lesson_tombstone WHERE space_id = %s AND id > %s ORDER BY id LIMIT %s
            ) t LEFT JOIN LATERAL (
                SELECT lesson_id, {column} <=> t.{column} AS distance FROM lesson_embedding
                WHERE space_id = '{space.pk}' AND state = 'active' AND account_id IS NOT DISTINCT FROM t.account_id
                ORDER BY {column} <=> t.{column} LIMIT {NEAREST}
            ) n ON n.distance <= %s AND n.lesson_id IS DISTINCT FROM t.successor_lesson
            GROUP BY t.id ORDER BY t.id
            """,
            [space.pk, after, limit, 1 - space.tombstone_similarity],
        )
    return [(buried, list(lessons)) for buried, lessons in rows]
