"""From an interaction to a lesson or a recorded reason why not: one distillation, and the sweep over all that are due.

The models are asked outside any transaction; the lesson, its vector, its review item and the end of the distillation
are one transaction, which the holder of the claim alone can complete.
"""

import time
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import transaction

from memory.distillers import Distiller, DistillerUnavailable, Material, UnusableAnswer
from memory.distillers import active as distillers
from memory.embedding.active import provider, usable_space
from memory.embedding.base import EmbeddingRefused
from memory.errors import EmbeddingUnavailable
from memory.models import Account, EmbeddingSpace, Interaction, LessonUsage, Outcome
from memory.models.vocabulary import (
    COHORT,
    DistillationReason,
    DistillationState,
    LessonState,
    Origin,
    ReviewKind,
    ReviewPolicy,
)
from memory.rules.distillation import FAILED, is_pitfall
from memory.rules.text import clean
from memory.services import distillation_lease as lease
from memory.services.distillation_lease import Claim, LeaseLost
from memory.services.gates import Meaning, quality_gates, text_gates
from memory.services.leases import owner
from memory.services.lesson import NewLesson, flag, store
from memory.services.scoping import lesson_account

PATH = "distillation"
SYSTEM = "system"
SWEEP_SECONDS = 200.0  # after which a sweep takes up no more, so that it ends well before a task's time limit
# Hard gates that have no reason of their own here: nothing was said, or more than a sentence.
REASONS = {"empty": DistillationReason.NO_CANDIDATE, "too_long": DistillationReason.NOT_CONCRETE}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Source:
    """An interaction as far as its distillation needs it."""

    interaction: UUID
    account: Account
    material: Material
    known: tuple[UUID, ...]  # the lessons that were handed out for it


def distill(interaction: UUID, task: str = "") -> DistillationState | None:
    """Distils one interaction; `task` names the worker's task. Returns the state it leaves it in.

    None if there was nothing to do: it does not wait, somebody else is at it or took it away, or the distiller rests
    or is off. Raises DistillerUnavailable if the distiller is not set up.
    """
    distiller = distillers.distiller()
    claim = lease.claim(interaction, owner(task)) if distiller else None
    if distiller is None or claim is None:
        return None
    try:
        return _attempt(claim, distiller)
    except LeaseLost:
        log.info("distillation_lease_lost", interaction=str(interaction), attempt=claim.attempt)
        return None


def sweep(task: str = "") -> int:
    """Takes up what no message announced, what is to be tried again, and what a dead worker left; returns how many."""
    lease.fail_exhausted()
    end = time.monotonic() + SWEEP_SECONDS
    done = 0
    for interaction in lease.due():
        if time.monotonic() > end or distillers.distiller() is None:
            break
        done += distill(interaction, task) is not None
    return done


def _attempt(claim: Claim, distiller: Distiller) -> DistillationState:
    """One attempt. A failure is put back: one that came without an answer lets the distiller rest."""
    try:
        return _work(claim, distiller)
    except UnusableAnswer as refusal:
        return lease.give_back(claim, refusal.detail, DistillationReason.DISTILLER_ERROR)
    except EmbeddingRefused as refusal:  # the proposal's fault: others need not wait for it
        return lease.give_back(claim, refusal.detail, DistillationReason.DISTILLER_ERROR)
    except (DistillerUnavailable, EmbeddingUnavailable) as refusal:
        log.warning("distillation_unavailable", interaction=str(claim.interaction), reason=refusal.detail)
        distillers.rest(refusal.retry_after if isinstance(refusal, DistillerUnavailable) else None)
        return lease.give_back(claim, refusal.detail, DistillationReason.ATTEMPTS_EXHAUSTED)


def _work(claim: Claim, distiller: Distiller) -> DistillationState:
    source = _source(claim)
    space = usable_space()  # first: a proposal whose meaning nobody can compare would be asked for in vain
    text = distiller.propose(source.material) if source.material.response.strip() else None
    lease.renew(claim)
    if text is None or (source.material.error and not is_pitfall(text)):
        lease.finish(claim, DistillationReason.NO_CANDIDATE)
        return DistillationState.NO_LESSON
    text = clean(text).strip()
    meaning = _meaning(text, source, space)
    lease.renew(claim)
    return _write(claim, source, text, meaning)


def _source(claim: Claim) -> Source:
    """Raises LeaseLost if the interaction was erased."""
    interaction = Interaction.objects.select_related("account").filter(pk=claim.interaction).first()
    if interaction is None:
        raise LeaseLost
    usages = LessonUsage.objects.filter(interaction=interaction, exposure__in=COHORT).order_by("rank")
    handed_out = list(usages.values_list("lesson_id", "lesson__text"))
    material = Material(
        task=interaction.task,
        response=interaction.response or "",
        known=tuple(text for _, text in handed_out),
        error=_error(claim) if claim.signal == FAILED else "",
    )
    known = tuple(pk for pk, _ in handed_out)
    return Source(interaction=interaction.pk, account=interaction.account, material=material, known=known)


def _error(claim: Claim) -> str:
    """What went wrong, in the words of whoever reported it last."""
    failures = Outcome.objects.filter(interaction_id=claim.interaction, signal=FAILED).exclude(detail="")
    return failures.order_by("-created_at", "-id").values_list("detail", flat=True).first() or "It failed."


def _meaning(text: str, source: Source, space: EmbeddingSpace) -> Meaning | None:
    """Where the text lies; None if it is refused for itself: what is private must not reach a model elsewhere."""
    if text_gates(text).refusal or quality_gates(text, source.material.task).flags:
        return None
    return Meaning(vector=provider().embed([text])[0], space=space)


def _write(claim: Claim, source: Source, text: str, meaning: Meaning | None) -> DistillationState:
    """The lesson or its refusal, and the end of the distillation. Raises LeaseLost, and then nothing is written."""
    gated = source.account.review_policy == ReviewPolicy.GATED
    new = NewLesson(
        text=text,
        origin=Origin.DISTILLED,
        path=PATH,
        actor=SYSTEM,
        state=LessonState.CANDIDATE if gated else LessonState.ACTIVE,
        account_id=lesson_account(source.account.pk),
        source_interaction=source.interaction,
        task=source.material.task,
        meaning=meaning,
        known=source.known,
    )
    with transaction.atomic():
        written = store(new, strict=True)
        if written.lesson is None:
            refusal = written.verdict.refusal
            lease.finish(claim, REASONS.get(refusal) or DistillationReason(refusal))
            return DistillationState.NO_LESSON
        flag(written.lesson, ReviewKind.NEW_LESSON)
        lease.finish(claim, DistillationReason.STORED, written.lesson.pk)
    return DistillationState.STORED
