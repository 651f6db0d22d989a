"""What a reviewer decides about a lesson in service: approve, keep out, let back, excuse a loss.

Each runs in the caller's transaction, takes the scope's lock, moves the state conditionally and journals.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import Max

from memory import conf
from memory.errors import Conflict, Invalid, NotFound
from memory.models import Credit, Lesson, LessonStanding, LessonUsage, UsageExemption
from memory.models.base import present
from memory.models.scope import scoped
from memory.models.vocabulary import COHORT, LessonState, TombstoneReason, TrustEventKind
from memory.services import tombstone
from memory.services.policies import policy
from memory.services.quarantine import evaluate, held_by_person, journal, move
from memory.services.rejection import held, looked_at


def approve(lesson_id: UUID, *, reviewer: int, reason: str = "") -> None:
    """Lets a candidate serve; marks a lesson that serves already as reviewed. Raises NotFound or Conflict."""
    lesson = held(lesson_id, (LessonState.CANDIDATE, LessonState.ACTIVE))
    before = LessonState(lesson.state)
    move(lesson.pk, before, LessonState.ACTIVE)
    Lesson.objects.filter(pk=lesson.pk).update(reviewed_at=present(), reviewed_by=reviewer)
    journal(lesson.pk, TrustEventKind.APPROVED, {"reason": reason, "before": before.value}, f"user:{reviewer}")


def quarantine(lesson_id: UUID, *, reviewer: int, reason: str) -> None:
    """Keeps a lesson out by a person's word: only a person lets it back. Raises NotFound or Conflict."""
    lesson = held(lesson_id, (LessonState.CANDIDATE, LessonState.ACTIVE))
    evaluate({lesson.pk: looked_at()}, lesson.account_id)  # its standing, also where it has no evidence yet
    move(lesson.pk, LessonState(lesson.state), LessonState.QUARANTINED)
    LessonStanding.objects.filter(pk=lesson.pk).update(quarantined_at=present(), released_seq=None, released_s=None)
    tombstone.write(lesson.pk, TombstoneReason.QUARANTINED)
    evidence = {"reason": reason, "before": lesson.state}
    journal(lesson.pk, TrustEventKind.QUARANTINED_BY_REVIEWER, evidence, f"user:{reviewer}")


def uphold(lesson_id: UUID, *, reviewer: int, reason: str = "") -> None:
    """Confirms a quarantine. Evidence may still free the lesson. Raises NotFound or Conflict."""
    lesson = held(lesson_id, (LessonState.QUARANTINED,))
    journal(lesson.pk, TrustEventKind.UPHELD, {"reason": reason}, f"user:{reviewer}")


def release(lesson_id: UUID, *, reviewer: int, reason: str) -> None:
    """Ends a quarantine and begins the ledger anew: earlier rows are history, the sums stay.

    Raises NotFound or Conflict.
    """
    lesson = held(lesson_id, (LessonState.QUARANTINED,))
    seq = _latest_credit(lesson)
    _let_back(lesson, ledger_from_seq=seq, released_seq=None, released_s=None)
    evidence = {"reason": reason, "ledger_from_seq": seq}
    journal(lesson.pk, TrustEventKind.RELEASED_BY_REVIEWER, evidence, f"user:{reviewer}")
    evaluate({lesson.pk: looked_at()}, lesson.account_id)


def release_to_trial(lesson_id: UUID, *, reviewer: int, reason: str) -> None:
    """Ends a quarantine with the ledger kept: a coin decides about serving until the odds have fallen.

    It is quarantined again only by a loss that makes its record worse than it was at the release. Raises NotFound,
    Conflict, or Invalid under the policy `reference`, which knows no trial.
    """
    if conf.current().trust_policy != "trial":
        raise Invalid.field("verdict", "the policy `reference` knows no trial. Release the lesson instead.")
    lesson = held(lesson_id, (LessonState.QUARANTINED,))
    seq = _latest_credit(lesson)
    s = LessonStanding.objects.filter(pk=lesson.pk).values_list("s", flat=True).first() or 0.0
    _let_back(lesson, released_seq=seq, released_s=s)
    evidence = {"reason": reason, "released_seq": seq, "s": s}
    journal(lesson.pk, TrustEventKind.RELEASED_TO_TRIAL, evidence, f"user:{reviewer}")
    evaluate({lesson.pk: looked_at()}, lesson.account_id)


def exempt(lesson_id: UUID, usage_id: UUID, *, reviewer: int, reason: str) -> UsageExemption:
    """Takes one loss out of a lesson's ledger: it was not caused by this lesson. The sums keep it.

    The lesson is judged anew at once and may be freed. Raises NotFound, Invalid if the row is no loss of this lesson
    that counts, or Conflict if it is exempted already.
    """
    lesson = held(lesson_id, (LessonState.CANDIDATE, LessonState.ACTIVE, LessonState.QUARANTINED))
    usage = LessonUsage.objects.filter(pk=usage_id, lesson=lesson).first()
    if usage is None:
        raise NotFound("This lesson was not handed out there.")
    if usage.exposure not in COHORT or usage.reward is None or usage.reward >= 0:
        raise Invalid.field("usage", "only a credited loss with the lesson in it can be excused.")
    if exemption_of(usage.pk) is not None:
        raise Conflict("This loss is excused already.")
    made = UsageExemption.objects.create(usage=usage, reviewer_id=reviewer, reason=reason)
    evidence = {"reason": reason, "usage": str(usage.pk)}
    journal(lesson.pk, TrustEventKind.EXEMPTED, evidence, f"user:{reviewer}")
    evaluate({lesson.pk: looked_at()}, lesson.account_id)
    return made


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What an excuse would do, without doing it."""

    odds_before: float | None  # exp(S); None under `reference`
    odds_after: float | None
    would_be_released: bool


def effect_of_excuse(lesson: Lesson, usage_id: UUID) -> Effect | None:
    """What taking this loss out of the ledger would come to now; None if the row is not one of this lesson."""
    interaction = LessonUsage.objects.filter(pk=usage_id, lesson=lesson).values_list("interaction", flat=True).first()
    if interaction is None:
        return None
    rule, seen = policy(), {}
    for without in (None, interaction):
        occasion = replace(looked_at(), without=without)
        ((_, seen[without]),) = rule.assess([lesson.pk], lesson.account_id, {lesson.pk: occasion})
    before, after = seen[None], seen[interaction]
    return Effect(
        odds_before=before.evidence.get("odds"),
        odds_after=after.evidence.get("odds"),
        would_be_released=lesson.state == LessonState.QUARANTINED and after.leave and not held_by_person(lesson.pk),
    )


def exemption_of(usage_id: UUID) -> UsageExemption | None:
    """The exemption of a row that stands."""
    made = UsageExemption.objects.filter(usage_id=usage_id, reverts__isnull=True, usageexemption__isnull=True)
    return made.first()


def take_back_exemption(usage_id: UUID, *, reviewer: int) -> None:
    """Puts an excused loss back into the ledger. Raises Conflict if it is not excused any more."""
    made = exemption_of(usage_id)
    if made is None:
        raise Conflict("This loss is not excused any more.")
    lesson = held(made.usage.lesson_id, tuple(LessonState))
    UsageExemption.objects.create(usage=made.usage, reviewer_id=reviewer, reason="taken back", reverts=made)
    evaluate({lesson.pk: looked_at()}, lesson.account_id)


def _latest_credit(lesson: Lesson) -> int:
    return Credit.objects.filter(scoped(lesson.account_id)).aggregate(latest=Max("credit_seq"))["latest"] or 0


def _let_back(lesson: Lesson, **standing: int | float | None) -> None:
    move(lesson.pk, LessonState.QUARANTINED, LessonState.ACTIVE)
    LessonStanding.objects.filter(pk=lesson.pk).update(quarantined_at=None, **standing)
    tombstone.lift(lesson.pk, TombstoneReason.QUARANTINED)
