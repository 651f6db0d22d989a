"""The gates that a text passes on its way to being a lesson.

Hard gates hold on every path that can write a lesson. Quality gates hold on automatic paths; an operator or reviewer
may pass them, and the lesson is then flagged for review.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q
from pgvector import HalfVector
from pgvector.django import CosineDistance

from memory.embedding import Vectors
from memory.models import EmbeddingSpace, Lesson, LessonEmbedding
from memory.models.scope import scoped
from memory.rules import text as texts
from memory.rules.claim import ClaimSignature, same_claim
from memory.rules.concreteness import judge
from memory.rules.privacy import find_private
from memory.services import similarity, tombstone

MAX_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the gates say of a text."""

    refusal: str = ""  # reason of the hard gate that refuses it; empty if none does
    flags: tuple[str, ...] = ()  # quality gates that it fails
    details: tuple[str, ...] = ()  # what exactly, for the person who reads the report; never the text
    digest: str | None = None  # of the normalised text; None if nothing is left of it


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """Where a text lies in an embedding space."""

    vector: Vectors  # unit vector
    space: EmbeddingSpace  # whose thresholds hold


def text_gates(text: str) -> Verdict:
    """The hard gates that look at the text alone: empty, too_long, private."""
    try:
        digest = texts.digest(text)
    except texts.EmptyText:
        return Verdict(refusal="empty")
    if len(text) > MAX_CHARACTERS:
        return Verdict(refusal="too_long", digest=digest, details=(f"over {MAX_CHARACTERS} characters",))
    if private := find_private(text):
        # The digest of a text that holds a secret could be used to guess the secret, so none is kept.
        return Verdict(refusal="private", details=private)
    return Verdict(digest=digest)


def quality_gates(text: str, task: str | None = None) -> Verdict:
    """Whether the text is concrete enough to be of use; `task` is what it was learned from."""
    judgement = judge(text, task=task)
    return Verdict(flags=() if judgement.concrete else ("vague",), details=judgement.reasons)


def value_gates(
    digest: str,
    claim: ClaimSignature,
    account_id: UUID | None,
    meaning: Meaning | None,
    known: tuple[UUID, ...],
    replaces: tuple[UUID, ...] = (),
) -> Verdict:
    """The hard gates that compare with what the store has rejected and holds: rejected_value, exact_duplicate.

    `known` are lessons that count as existing whatever their scope and state. `replaces` are the lessons whose place
    a new wording takes: what they had replaced themselves does not refuse a similar text. Call it in the transaction
    that inserts, under the scope's lock, so that its answer still holds when the lesson is there.
    """
    buried = tombstone.is_buried(account_id, digest)
    if not buried and meaning is not None:
        buried = bool(similarity.matching_tombstone(meaning.vector, claim, account_id, meaning.space, replaces))
    if buried:
        return Verdict(refusal="rejected_value", digest=digest)
    if Lesson.objects.filter(scoped(account_id) | Q(pk__in=known), text_sha256=digest).exists():
        return Verdict(refusal="exact_duplicate", digest=digest)
    return Verdict(digest=digest)


def is_semantic_duplicate(
    claim: ClaimSignature,
    account_id: UUID | None,
    meaning: Meaning,
    known: tuple[UUID, ...],
    replaces: tuple[UUID, ...] = (),
) -> bool:
    """The quality gate that compares meanings: whether a lesson of the scope, or a known one, says the same already.

    The lessons that the text `replaces` do not count.
    """
    space = meaning.space
    if similarity.semantic_duplicate(meaning.vector, claim, account_id, space, replaces) is not None:
        return True
    distance = CosineDistance("embedding", HalfVector(meaning.vector))
    near = LessonEmbedding.objects.filter(lesson__in=known, space=space).annotate(distance=distance)
    claims = near.filter(distance__lte=1 - space.duplicate_similarity).values_list(
        "lesson__polarity", "lesson__anchors"
    )
    return any(same_claim(claim, similarity.stored_claim(*columns)).same for columns in claims)
