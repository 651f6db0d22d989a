"""What reviewers have before them, in bulk: questions of each kind, work to judge, decisions and wishes of long ago."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.urls import reverse
from django.utils import timezone

from memory.models import (
    Account,
    Adjudication,
    ApiKey,
    Comment,
    Contradiction,
    Interaction,
    Lesson,
    LessonStanding,
    LessonUsage,
    Preference,
    PrunePlan,
    ReviewItem,
    TrustEvent,
)
from memory.models.vocabulary import LessonState, ReviewKind, ReviewStatus, Verdict
from memory.services.authority import Person
from memory.services.preference import Refinement, refine
from review.urls import urlpatterns

BATCH: Final = 1000  # rows of one statement
QUARANTINED_EVERY: Final = 20  # one lesson in twenty is, as in the store
COHORT: Final = 3  # lessons of each piece of work


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One of each thing that an address is about; the lesson has the longest record of all."""

    lesson: Lesson
    item: ReviewItem
    contradiction: Contradiction
    work: Interaction
    preference: Preference
    plan: PrunePlan


def addresses(desk: Desk) -> dict[str, str]:
    """Every address of the review pages by its name, about the things of the desk; some answer no GET."""
    latest = desk.preference.revision
    about: dict[str, Any] = {
        "lesson_id": desk.lesson.pk,
        "item_id": desk.item.pk,
        "contradiction_id": desk.contradiction.pk,
        "interaction_id": desk.work.pk,
        "preference_id": desk.preference.pk,
        "account_id": desk.work.account_id,
        "user_id": 1,
        "digest": desk.plan.digest,
        "kind": "csv",
        "verdict": "keep_both",
    }
    of_one = {"preference_restore": {"number": latest - 1}, "preference_revert": {"number": latest}}
    asked = {
        "ask": f"subject={desk.contradiction.pk}&expected_version=1",
        "preference_compare": f"a={latest - 1}&b={latest}",
        "retrieval": "q=Retry+the+call+when+it+fails",
        "lessons": "q=the",
    }
    found = {}
    for pattern in urlpatterns:
        name = str(pattern.name)
        given = about | of_one.get(name, {})
        url = reverse(f"review:{name}", kwargs={each: given[each] for each in pattern.pattern.converters})
        found[name] = f"{url}?{asked[name]}" if name in asked else url
    return found


def lay(account: Account, key: ApiKey, who: Person, lessons: Sequence[Lesson], *, works: int) -> None:
    """Asks about each lesson, about each two of them, and about so many pieces of work; and decides as often before.

    The first lesson was handed out in all of the work, and most has happened to it.
    """
    out = [lesson for lesson in lessons if lesson.state == LessonState.QUARANTINED] or lessons[1::QUARANTINED_EVERY]
    _quarantine(out)
    _ask(ReviewKind.NEW_LESSON, [(lesson.pk, None) for lesson in lessons if lesson not in set(out)])
    _contradict(lessons)
    _hand_out(account, key, lessons, works)
    _decide(who, lessons)


def _ask(kind: ReviewKind, about: Sequence[tuple[UUID, UUID | None]]) -> None:
    """Questions that are all a little less urgent than the one before."""
    ReviewItem.objects.bulk_create(
        [
            ReviewItem(
                kind=kind.value,
                subject=subject,
                account_id=account,
                priority=0.9 - place * 1e-5,
                priority_parts={"severity": 0.9 - place * 1e-5},
                status=ReviewStatus.OPEN.value,
            )
            for place, (subject, account) in enumerate(about)
        ],
        BATCH,
    )


def _quarantine(lessons: Sequence[Lesson]) -> None:
    ids = [lesson.pk for lesson in lessons]
    Lesson.objects.filter(pk__in=ids).update(state=LessonState.QUARANTINED.value)
    have = set(LessonStanding.objects.filter(pk__in=ids).values_list("pk", flat=True))
    LessonStanding.objects.filter(pk__in=have).update(quarantined_at=timezone.now())
    LessonStanding.objects.bulk_create(
        LessonStanding(
            pk=pk, policy="trial", wins=3, losses=7, on_trial=False, version=1, quarantined_at=timezone.now()
        )
        for pk in ids
        if pk not in have
    )
    _ask(ReviewKind.QUARANTINE, [(pk, None) for pk in ids])


def _contradict(lessons: Sequence[Lesson]) -> None:
    """Every second pair of neighbours shares a lesson with the next: sets of three."""
    pairs = []
    for n in range(0, len(lessons) - 2, 3):
        middle = lessons[n + 1]
        for other in (lessons[n], lessons[n + 2]):
            first, second = sorted((middle, other), key=lambda lesson: lesson.text_sha256)
            pairs.append(
                Contradiction(
                    first=first.pk,
                    second=second.pk,
                    first_digest=first.text_sha256,
                    second_digest=second.text_sha256,
                    similarity=0.9,
                    basis="polarity:prohibition",
                )
            )
    Contradiction.objects.bulk_create(pairs, BATCH)
    _ask(ReviewKind.CONTRADICTION, [(pair.pk, None) for pair in pairs])


def _hand_out(account: Account, key: ApiKey, lessons: Sequence[Lesson], works: int) -> None:
    made = [
        Interaction(
            account=account, api_key=key, project_explicit=False, task=f"Work {n} of today", response="Done. " * 40
        )
        for n in range(works)
    ]
    Interaction.objects.bulk_create(made, BATCH)
    handed = [
        LessonUsage(lesson=lesson, interaction=work, exposure="served", rank=rank, fused_score=0.01, probability=1.0)
        for n, work in enumerate(made)
        for rank, lesson in enumerate(dict.fromkeys((lessons[0], *_some(lessons, n))), start=1)
    ]
    LessonUsage.objects.bulk_create(handed, BATCH)
    _ask(ReviewKind.OUTCOME_NEEDED, [(work.pk, account.pk) for work in made])


def _some(lessons: Sequence[Lesson], n: int) -> list[Lesson]:
    return [lessons[(n * 7 + step * 11) % len(lessons)] for step in range(1, COHORT)]


def _decide(who: Person, lessons: Sequence[Lesson]) -> None:
    """Long ago, and as much about the first lesson as about all others together."""
    about = [*lessons, *([lessons[0]] * len(lessons))]
    TrustEvent.objects.bulk_create(
        [
            TrustEvent(lesson=lesson.pk, kind="approved", evidence={"reason": "checked"}, actor=who.actor)
            for lesson in about
        ],
        BATCH,
    )
    Adjudication.objects.bulk_create(
        [
            Adjudication(subject=lesson.pk, verdict=Verdict.APPROVE.value, reviewer_id=who.user_id, note=f"Note {n}.")
            for n, lesson in enumerate(about)
        ],
        BATCH,
    )
    Comment.objects.bulk_create(
        [Comment(subject=lessons[0].pk, author_id=who.user_id, text=f"Said {n}.") for n in range(min(50, len(lessons)))]
    )


def wish(account: Account, number: int, *, refined: int = 0) -> Preference:
    """So many preferences; the first of them, refined so often."""
    Preference.objects.bulk_create(
        Preference(
            account=account, scope="global", key=f"wish-{n}", text=f"I prefer answer {n} short.", confidence=0.5,
            evidence_count=1, enabled=True, revision=1,
        )
        for n in range(Preference.objects.count(), Preference.objects.count() + number)
    )  # fmt: skip
    first = Preference.objects.filter(account=account).order_by("pk")[0]
    for _ in range(refined):
        proposal = Refinement(
            expected_version=first.revision,
            changes={"text": f"I prefer short answers, at most {first.revision + 1} lines."},
            evidence=[{"kind": "note", "text": "It said so."}],
            expected_outcome="Fewer questions back.",
        )
        refine(account.pk, first.pk, proposal, "system")
        first.refresh_from_db()
    return first
