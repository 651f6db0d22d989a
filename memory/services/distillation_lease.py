"""Who works on a distillation: claimed with a token, kept by signs of life, finished by the token's holder alone.

    pending -> claimed -> stored | no_lesson | cancelled
    claimed -> retryable -> claimed, and after the last attempt failed

A cancelled one may wait again later, without the token: whoever held it has lost it.

Every move is one conditional UPDATE whose row count decides who won. The sign of life is a renewal between the steps of
the work and not a thread beside it: each step is bounded well below the lease, and a thread would keep the lease of a
worker that hangs. A worker that dies leaves its claim to expire; the attempt was counted when it was claimed, so that a
crash counts too.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from memory import conf
from memory.models import LessonDistillation
from memory.models.vocabulary import DistillationReason, DistillationState
from memory.rules.distillation import wait_after
from memory.services.leases import UNCLAIMED

OPEN = (DistillationState.PENDING, DistillationState.CLAIMED, DistillationState.RETRYABLE)
WAITING = (DistillationState.PENDING, DistillationState.RETRYABLE)
DUE_AT_ONCE = 500  # rows that one look at the queue brings


class LeaseLost(Exception):
    """The claim is another's, was cancelled, or its row is gone: whoever held it writes nothing."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to finish one distillation, for as long as the token stands in its row."""

    interaction: UUID
    token: UUID
    signal: str  # the outcome that it rests on
    attempt: int  # which one this is, from 1


def claim(interaction: UUID, by: str) -> Claim | None:
    """Takes up a distillation that waits or whose holder has died; None if there is nothing to take up.

    Backing off is the sweep's: whoever names an interaction gets it.
    """
    token = uuid4()
    claimable = Q(state__in=WAITING) | Q(state=DistillationState.CLAIMED, lease_expires_at__lt=Now())
    taken = LessonDistillation.objects.filter(
        claimable, pk=interaction, attempts__lt=conf.current().distill_max_attempts
    ).update(
        state=DistillationState.CLAIMED,
        claim_token=token,
        owner=by,
        claimed_at=Now(),
        lease_expires_at=_until(),
        attempts=F("attempts") + 1,
    )
    row = _held(interaction, token).first() if taken else None
    return Claim(interaction=interaction, token=token, signal=row.signal, attempt=row.attempts) if row else None


def renew(claim: Claim) -> None:
    """A sign of life. Raises LeaseLost."""
    _must_hold(_held(claim.interaction, claim.token).update(lease_expires_at=_until()))


def finish(claim: Claim, reason: DistillationReason, lesson: UUID | None = None) -> None:
    """Closes the distillation, with a lesson or without. Raises LeaseLost: the caller's transaction must then end."""
    state = DistillationState.NO_LESSON if lesson is None else DistillationState.STORED
    _must_hold(_close(_held(claim.interaction, claim.token), state, reason, lesson))


def give_back(claim: Claim, error: str, final: DistillationReason) -> DistillationState:
    """Puts it back for another attempt; after the last one it has failed, for the reason `final`. Raises LeaseLost."""
    held = _held(claim.interaction, claim.token)
    if claim.attempt < conf.current().distill_max_attempts:
        _must_hold(held.update(state=DistillationState.RETRYABLE, last_error=error, **UNCLAIMED))
        return DistillationState.RETRYABLE
    _must_hold(_close(held, DistillationState.FAILED, final, last_error=error))
    return DistillationState.FAILED


def open_rows(interaction: UUID) -> "QuerySet[LessonDistillation]":
    """The interaction's distillation if it is not closed yet, whoever is at it."""
    return LessonDistillation.objects.filter(pk=interaction, state__in=OPEN)


def cancel(rows: "QuerySet[LessonDistillation]", reason: DistillationReason) -> int:
    """Cancels open rows; returns how many. A worker that is at one loses it."""
    return _close(rows, DistillationState.CANCELLED, reason)


def fail_exhausted() -> int:
    """Closes what has no attempt left: its last worker died, or fewer attempts are allowed now. Returns how many."""
    abandoned = Q(state=DistillationState.RETRYABLE) | Q(state=DistillationState.CLAIMED, lease_expires_at__lt=Now())
    rows = LessonDistillation.objects.filter(abandoned, attempts__gte=conf.current().distill_max_attempts)
    return _close(rows, DistillationState.FAILED, DistillationReason.ATTEMPTS_EXHAUSTED)


def due() -> list[UUID]:
    """Interactions that somebody should take up, least tried and oldest first."""
    now = timezone.now()
    most = conf.current().distill_max_attempts
    ready = Q(state=DistillationState.PENDING) | Q(state=DistillationState.CLAIMED, lease_expires_at__lt=now)
    for attempts in range(1, most):
        since = now - timedelta(seconds=wait_after(attempts))
        ready |= Q(state=DistillationState.RETRYABLE, attempts=attempts, created_at__lte=since)
    rows = LessonDistillation.objects.filter(ready, attempts__lt=most).order_by("attempts", "created_at")
    return list(rows.values_list("pk", flat=True)[:DUE_AT_ONCE])


def _held(interaction: UUID, token: UUID) -> "QuerySet[LessonDistillation]":
    return LessonDistillation.objects.filter(pk=interaction, claim_token=token)


def _until() -> object:
    return Now() + timedelta(seconds=conf.current().distill_lease_seconds)


def _must_hold(rows: int) -> None:
    if not rows:
        raise LeaseLost


def _close(
    rows: "QuerySet[LessonDistillation]",
    state: DistillationState,
    reason: DistillationReason,
    lesson: UUID | None = None,
    **more: object,
) -> int:
    return rows.update(state=state, result_reason=reason, lesson=lesson, completed_at=Now(), **UNCLAIMED, **more)
