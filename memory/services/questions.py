"""Questions for a person: each asked once, not again after its answer, and withdrawn once it has become idle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models import Contradiction, ReviewItem
from memory.models.vocabulary import ReviewKind, ReviewStatus

UNRESOLVED: Final = (ReviewStatus.OPEN.value, ReviewStatus.SNOOZED.value)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a person should look at."""

    kind: ReviewKind
    subject: UUID
    account_id: UUID | None
    severity: float  # chance in [0, 1] that it matters to who is handed the lesson
    since: datetime  # when what it is about came to be; an answer that is younger stands
    about: str = ""  # what exactly, where the kind does not say it


def ask(questions: Iterable[Question]) -> int:
    """Opens those that are not open, snoozed or answered; returns how many. An open one may become more urgent."""
    asked = {(q.kind.value, q.subject): q for q in sorted(questions, key=lambda q: q.severity)}
    if not asked:
        return 0
    about = ReviewItem.objects.filter(
        kind__in={kind for kind, _ in asked}, subject__in={subject for _, subject in asked}
    )
    for item in about.exclude(status=ReviewStatus.OBSOLETE.value):
        question = asked.get((item.kind, item.subject))
        if question is None:
            continue
        if item.status in UNRESOLVED and item.priority_parts.get("severity", item.priority) < question.severity:
            ReviewItem.objects.filter(pk=item.pk).update(version=F("version") + 1, **_weight(question))
        if item.status in UNRESOLVED or (item.resolved_at and item.resolved_at >= question.since):
            del asked[item.kind, item.subject]
    items = [
        ReviewItem(
            account_id=q.account_id,
            kind=q.kind.value,
            subject=q.subject,
            status=ReviewStatus.OPEN.value,
            **_weight(q),
        )
        for q in asked.values()
    ]
    ReviewItem.objects.bulk_create(items, ignore_conflicts=True)  # another writer may ask the same
    return len(items)


def _weight(question: Question) -> dict[str, Any]:
    parts = {"severity": question.severity, **({question.about: 1.0} if question.about else {})}
    return {"priority": question.severity, "priority_parts": parts}


def subjects(kind: ReviewKind) -> list[UUID]:
    """What questions of this kind are unresolved about."""
    return list(ReviewItem.objects.filter(kind=kind.value, status__in=UNRESOLVED).values_list("subject", flat=True))


def withdraw(kinds: Iterable[ReviewKind], subjects: Sequence[UUID]) -> int:
    """Makes questions of these kinds about these subjects obsolete, where nobody has answered; returns how many."""
    return _make_obsolete(Q(kind__in=[kind.value for kind in kinds], subject__in=subjects))


def withdraw_about(lessons: Sequence[UUID]) -> int:
    """Makes every question about lessons that are gone obsolete, also about what they contradict."""
    return _make_obsolete(Q(subject__in=[*lessons, *_pairs_of(lessons)]))


def unresolved_about(lessons: Sequence[UUID]) -> set[UUID]:
    """Questions that wait for a person: about these lessons, and about what they contradict."""
    items = ReviewItem.objects.filter(subject__in=[*lessons, *_pairs_of(lessons)], status__in=UNRESOLVED)
    return set(items.values_list("pk", flat=True))


def touch_pairs(lessons: Sequence[UUID]) -> None:
    """A side of these pairs changed: who compared it before must look again."""
    touch(*_pairs_of(lessons))


def _pairs_of(lessons: Sequence[UUID]) -> list[UUID]:
    either = Q(first__in=lessons) | Q(second__in=lessons)
    return list(Contradiction.objects.filter(either, verdict__isnull=True).values_list("pk", flat=True))


def resolve(items: Iterable[UUID], user_id: int) -> None:
    """Closes questions that a person has answered."""
    ReviewItem.objects.filter(pk__in=items).update(
        status=ReviewStatus.RESOLVED.value,
        version=F("version") + 1,
        resolved_by=user_id,
        resolved_at=Now(),
        claimed_by=None,
        claim_expires_at=None,
    )


def answer(
    subject: UUID, kinds: Iterable[ReviewKind], item: ReviewItem | None, asked: set[UUID], user_id: int
) -> list[str]:
    """Closes what a decision answers: the item, and questions of these kinds about the subject.

    `asked` is what was unresolved about its lessons before. Returns what an undo has to open again: what is answered,
    and what of `asked` has become idle by the decision.
    """
    answered = ReviewItem.objects.filter(subject=subject, kind__in=[k.value for k in kinds], status__in=UNRESOLVED)
    ids = {*answered.values_list("pk", flat=True), *([item.pk] if item else [])}
    resolve(ids, user_id)
    waiting = ReviewItem.objects.filter(pk__in=asked, status__in=UNRESOLVED).values_list("pk", flat=True)
    return sorted(map(str, ids | asked - set(waiting)))


def reopen(items: Iterable[str]) -> list[str]:
    """Opens answered questions again, unless the same was asked anew meanwhile; returns those that are open now."""
    opened = []
    for item in ReviewItem.objects.filter(pk__in=list(items)).order_by("pk"):
        if not ReviewItem.objects.filter(kind=item.kind, subject=item.subject, status__in=UNRESOLVED).exists():
            ReviewItem.objects.filter(pk=item.pk).update(
                status=ReviewStatus.OPEN.value, version=F("version") + 1, resolved_by=None, resolved_at=None
            )
            opened.append(str(item.pk))
    return opened


def touch(*subjects: UUID) -> None:
    """The subjects changed: who looked before must look again."""
    ReviewItem.objects.filter(subject__in=subjects, status__in=UNRESOLVED).update(version=F("version") + 1)


def _make_obsolete(which: Q) -> int:
    return ReviewItem.objects.filter(which, status__in=UNRESOLVED).update(
        status=ReviewStatus.OBSOLETE.value, version=F("version") + 1, claimed_by=None, claim_expires_at=None
    )
