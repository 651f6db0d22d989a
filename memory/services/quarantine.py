"""Standing, quarantine and release: a policy decides, this acts, and the journal says why.

`move` is the only function that changes a lesson's state.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import Lesson, LessonStanding, TrustEvent
from memory.models.base import present
from memory.models.rows import insert
from memory.models.vocabulary import Exposure, LessonState, ReviewKind, TombstoneReason, TrustEventKind
from memory.services import questions, tombstone
from memory.services.evidence import Assessment, Occasion, Record
from memory.services.policies import policy
from memory.services.questions import Question
from memory.services.webhooks import events

SYSTEM = "system"
SEVERITY = 0.9  # chance that a wrong quarantine, or a right one undone, matters: it decides what agents are handed
# What an evaluation writes; the other columns follow from trust events.
FIGURES = (
    "policy", "wins", "losses", "last_win_at", "last_loss_at", "s", "d", "on_trial", "evidence", "evaluated_at",
    "version",
)  # fmt: skip


def evaluate(occasions: Mapping[UUID, Occasion], account_id: UUID | None) -> None:
    """Judges lessons anew and acts: standing, quarantine, release. Runs in the transaction of what moved them."""
    rule = policy()
    assessed = rule.assess(occasions, account_id, occasions)
    keep(assessed, rule.name)
    for record, assessment in assessed:
        _note_trial(record, assessment)
        if record.state == LessonState.ACTIVE and assessment.enter:
            _quarantine(record, assessment)
        elif record.state == LessonState.QUARANTINED:
            _review(record, assessment, occasions[record.lesson])


def _note_trial(record: Record, assessment: Assessment) -> None:
    """The journal says when a trial began and when it ended without a quarantine."""
    if assessment.on_trial and not record.on_trial:
        journal(record.lesson, TrustEventKind.TRIAL_OPENED, assessment.evidence)
    elif record.on_trial and not assessment.on_trial and not assessment.enter:
        journal(record.lesson, TrustEventKind.TRIAL_CLOSED, assessment.evidence)


def keep(assessed: Sequence[tuple[Record, Assessment]], policy_name: str) -> None:
    """Writes the standings in one statement: the counters, and the evidence as a dated snapshot."""
    now = present()
    rows = [
        LessonStanding(
            lesson_id=record.lesson,
            policy=policy_name,
            wins=record.wins,
            losses=record.losses,
            last_win_at=record.last(win=True),
            last_loss_at=record.last(win=False),
            s=assessment.s,
            d=assessment.d,
            on_trial=assessment.on_trial,
            evidence=assessment.evidence,
            evaluated_at=now,
            version=record.version + 1,
        )
        for record, assessment in assessed
    ]
    insert(rows, f"ON CONFLICT (lesson_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in FIGURES)}")


def move(lesson: UUID, before: LessonState, after: LessonState) -> bool:
    """Moves a lesson's state if it still is what the caller saw; returns whether this caller moved it."""
    return bool(Lesson.objects.filter(pk=lesson, state=before).update(state=after))


def journal(lesson: UUID, kind: TrustEventKind, evidence: dict[str, Any], actor: str = SYSTEM) -> None:
    """Appends to the lesson's history; who looked at it before must look again before they decide."""
    questions.touch(lesson)
    TrustEvent.objects.create(lesson=lesson, kind=kind.value, evidence=evidence, actor=actor)
    events.quarantined(lesson, kind, evidence)


def _quarantine(record: Record, assessment: Assessment) -> None:
    if not move(record.lesson, LessonState.ACTIVE, LessonState.QUARANTINED):
        return
    LessonStanding.objects.filter(pk=record.lesson).update(
        quarantined_at=present(), d=None if assessment.d is None else 0.0, released_seq=None, released_s=None
    )
    tombstone.write(record.lesson, TombstoneReason.QUARANTINED)
    journal(record.lesson, TrustEventKind.QUARANTINED, assessment.evidence)
    _ask(record.lesson)


def _ask(lesson_id: UUID) -> None:
    """A person should look at what the policy kept out."""
    account = Lesson.objects.values_list("account_id", flat=True).get(pk=lesson_id)
    question = Question(
        kind=ReviewKind.QUARANTINE, subject=lesson_id, account_id=account, severity=SEVERITY, since=present()
    )
    questions.ask([question])


def _review(record: Record, assessment: Assessment, occasion: Occasion) -> None:
    """A quarantined lesson has new evidence: it is freed, or a probation loss is noted."""
    if occasion.exposure == Exposure.PROBATION and occasion.loss == 1:
        journal(record.lesson, TrustEventKind.PROBATION_LOSS, assessment.evidence)
    if assessment.leave and not held_by_person(record.lesson):
        free(record.lesson, TrustEventKind.REHABILITATED, assessment.evidence)


def held_by_person(lesson: UUID) -> bool:
    """Whether a reviewer, and not the policy, put the lesson into its present quarantine."""
    kinds = (TrustEventKind.QUARANTINED, TrustEventKind.QUARANTINED_BY_REVIEWER)
    latest = TrustEvent.objects.filter(lesson=lesson, kind__in=kinds).order_by("-created_at", "-id").first()
    return latest is not None and latest.kind == TrustEventKind.QUARANTINED_BY_REVIEWER


def free(lesson: UUID, kind: TrustEventKind, evidence: dict[str, Any], actor: str = SYSTEM) -> bool:
    """Takes a lesson out of quarantine: active again, its tombstone lifted, the reason in the journal."""
    if not move(lesson, LessonState.QUARANTINED, LessonState.ACTIVE):
        return False
    LessonStanding.objects.filter(pk=lesson).update(quarantined_at=None)
    tombstone.lift(lesson, TombstoneReason.QUARANTINED)
    questions.withdraw([ReviewKind.QUARANTINE, ReviewKind.SECOND_OPINION], [lesson])
    journal(lesson, kind, evidence, actor)
    return True


def lift_by_clock(now: datetime, hours: float) -> int:
    """Frees what has been quarantined for `hours` without a loss since; off while `hours` is 0. Returns how many."""
    if hours <= 0:
        return 0
    freed = 0
    waiting = LessonStanding.objects.filter(quarantined_at__isnull=False).order_by("lesson_id")
    for standing in waiting:
        since = max(filter(None, (standing.quarantined_at, standing.last_loss_at)))
        if (now - since).total_seconds() >= hours * 3600 and not held_by_person(standing.lesson_id):
            evidence = {"policy": standing.policy, "clock_hours": hours, "since": since.isoformat()}
            freed += free(standing.lesson_id, TrustEventKind.REHABILITATED, evidence)
    return freed
