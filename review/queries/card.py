"""The card of a question about a lesson: what is asked, what it was learned from, what is near it, what to mind."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from memory.models import (
    Adjudication,
    Comment,
    EmbeddingSpace,
    Interaction,
    Lesson,
    LessonStanding,
    LessonTombstone,
    ReviewItem,
    SecondOpinion,
)
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind, ReviewStatus
from memory.rules.claim import same_claim, signature
from memory.rules.priority import in_words
from memory.rules.quoting import quotes
from memory.services import review_queue
from memory.services.authority import Person
from memory.services.bulk_decisions import holder_of
from memory.services.questions import UNRESOLVED
from memory.services.reading import neighbours_of
from memory.services.second_opinion import opinions
from review.queries.lesson import comments
from review.queries.outcomes import standing_of

QUOTED: Final = 3  # spans of the source
NEAR: Final = 3  # lessons beside it
ASKED: Final[dict[str, str]] = {
    ReviewKind.NEW_LESSON: "Should agents be handed this?",
    ReviewKind.VAGUE: "Is this concrete enough to help?",
    ReviewKind.NEAR_DUPLICATE: "Does another lesson say this already?",
    ReviewKind.STALE: "Is this still right? It did well once and has not been judged for long.",
    ReviewKind.QUARANTINE: "Should it stay out?",
    ReviewKind.SECOND_OPINION: "What would you do with this?",
}
#: What an open question about a lesson warns of, whichever of them is being looked at.
FLAGS: Final[dict[str, str]] = {
    ReviewKind.VAGUE: "It may say nothing concrete",
    ReviewKind.NEAR_DUPLICATE: "It is near a lesson that says the same",
    ReviewKind.STALE: "Nobody has judged it for long",
    ReviewKind.QUARANTINE: "Its losses are improbable for its base rate",
}
PARTS: Final = {"private": "It may hold something private", "rejected_value": "Its value was rejected before"}


@dataclass(frozen=True, kw_only=True)
class Near:
    """A lesson beside it."""

    id: UUID
    text: str
    similarity: float  # cosine
    suggestion: str  # that it says the same, or the opposite; empty for neither


@dataclass(frozen=True, kw_only=True)
class Source:
    """The work that it was learned from."""

    interaction: UUID
    task: str
    project: str  # empty without one
    quotes: Sequence[str]  # of the answer, at most three


@dataclass(frozen=True, kw_only=True)
class Card:
    """All of it. On a second opinion that is still to be given, what would lead the reader is absent."""

    item: ReviewItem
    lesson: Lesson
    standing: LessonStanding | None
    asked: str
    holder: str  # somebody else who has it; empty for nobody
    mine: bool  # the reader has it
    blind: bool
    source: Source | None  # None where there is none, or it is another account's
    near: Sequence[Near]
    flags: Sequence[str]
    pairs: Sequence[tuple[UUID, str]]  # open contradictions that it is in, with the other lesson's text
    parts: Sequence[tuple[str, float]]  # of its priority, in words
    comments: Sequence[Comment]
    opinions: Sequence[SecondOpinion]


def card(item: ReviewItem, lesson: Lesson, person: Person, own: Q) -> Card:
    """The card in a constant number of reads. `own` says whose work the reader may see."""
    blind = item.kind == ReviewKind.SECOND_OPINION and item.status in UNRESOLVED
    now = timezone.now()
    return Card(
        item=item,
        lesson=lesson,
        standing=standing_of(lesson),
        asked=ASKED.get(item.kind, ""),
        holder=holder_of(item, person.user_id),
        mine=item.claimed_by_id == person.user_id and item.claim_expires_at is not None and item.claim_expires_at > now,
        blind=blind,
        source=_source(lesson, own),
        near=_near(lesson, blind),
        flags=[] if blind else _flags(item),
        pairs=[] if blind else _pairs(lesson.pk),
        parts=[] if blind else in_words(item.priority_parts),
        comments=comments(lesson.pk),
        opinions=opinions(lesson.pk),
    )


def _source(lesson: Lesson, own: Q) -> Source | None:
    if lesson.source_interaction is None:
        return None
    found = Interaction.objects.filter(own, pk=lesson.source_interaction).select_related("project").first()
    if found is None:
        return None
    project = found.project.slug if found.project else ""
    spans = quotes(lesson.text, found.response or "", QUOTED)
    return Source(interaction=found.pk, task=found.task, project=project, quotes=spans)


def _near(lesson: Lesson, blind: bool) -> list[Near]:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    if space is None:
        return []
    return [
        Near(
            id=each["id"],
            text=each["text"],
            similarity=each["similarity"],
            suggestion="" if blind else _suggestion(lesson.text, each["text"], each["similarity"], space),
        )
        for each in neighbours_of(lesson, NEAR)
    ]


def _suggestion(text: str, other: str, similarity: float, space: EmbeddingSpace) -> str:
    compared = same_claim(signature(text), signature(other))
    if compared.same and similarity >= space.duplicate_similarity:
        return "May say the same"
    if compared.reason.startswith("polarity") and similarity >= space.contradiction_similarity:
        return "May say the opposite"
    return ""


def _flags(item: ReviewItem) -> list[str]:
    """What the questions that are open about the lesson warn of, this one's first."""
    open_ones = ReviewItem.objects.filter(subject=item.subject, status__in=UNRESOLVED)
    rows = sorted(open_ones.values_list("pk", "kind", "priority_parts"), key=lambda row: row[0] != item.pk)
    named = [FLAGS[ReviewKind(kind)] for _, kind, _ in rows if kind in FLAGS]
    return [*named, *(PARTS[part] for _, _, parts in rows for part in parts if part in PARTS)]


def _pairs(lesson: UUID) -> list[tuple[UUID, str]]:
    rows: list[tuple[UUID, str]] = fetch(
        """
        SELECT c.id, l.text FROM contradiction c
            JOIN lesson l ON l.id = CASE WHEN c.first = %(lesson)s THEN c.second ELSE c.first END
        WHERE (c.first = %(lesson)s OR c.second = %(lesson)s) AND c.verdict IS NULL ORDER BY c.created_at DESC LIMIT 5
        """,
        {"lesson": lesson},
    )
    return rows


def answer(item: ReviewItem) -> Adjudication | None:
    """The decision that answered a question, if one did."""
    made = Adjudication.objects.filter(subject=item.subject, adjudication__isnull=True, reverts__isnull=True)
    return made.select_related("reviewer").order_by("-created_at", "-pk").first()


def successor(lesson: UUID) -> UUID | None:
    """The lesson that took another's place, or the place of the one that did; None if there is none any more."""
    passed: set[UUID] = set()
    while lesson not in passed:
        passed.add(lesson)
        buried = LessonTombstone.objects.filter(source_lesson=lesson, successor_lesson__isnull=False)
        named = buried.order_by("-created_at").values_list("successor_lesson", flat=True).first()
        if named is None or Lesson.objects.filter(pk=named).exists():
            return named
        lesson = named
    return None


@dataclass(frozen=True, kw_only=True)
class Back:
    """Why a question has returned, or when it will."""

    until: datetime | None
    servings: int | None
    worse: bool
    asleep: bool  # it has not come back yet


def back(item: ReviewItem) -> Back | None:
    """What a question was put off for; None if it never was."""
    if item.snoozed_until is None and item.snoozed_servings is None and item.snoozed_s is None:
        return None
    asleep = item.status == ReviewStatus.SNOOZED.value
    return Back(
        until=item.snoozed_until,
        servings=item.snoozed_servings,
        worse=item.snoozed_s is not None,
        asleep=asleep and not review_queue.due().filter(pk=item.pk).exists(),
    )
