"""The queue of distillations from outside: what enters it, what leaves it undone, and what an operator may do.

An interaction enters in the transaction that makes it worth learning from, and its row stays. What a word cancelled,
another word can bring back; what ended in any other way has ended.
"""

from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memory import conf
from memory.errors import Conflict, NotFound
from memory.models import Interaction, LessonDistillation, Outcome
from memory.models.sql import execute
from memory.models.vocabulary import DistillationReason, DistillationState, OperatorAction
from memory.rules.distillation import FAILED, ground_of, pitfall_of
from memory.rules.signals import Verdict
from memory.services import acts
from memory.services import distillation_lease as lease
from memory.services.caller import Caller
from memory.services.leases import UNCLAIMED
from memory.services.nudge import nudge

DISTILL = "distill"

log = structlog.get_logger(__name__)


def consider(interaction: UUID) -> None:
    """Queues an interaction that has become worth learning from, also again, and cancels one that no longer is.

    Called after each outcome and each response, in the transaction that wrote it and under the interaction's row lock:
    the queue and its reason are committed together, and two reports take turns.
    """
    ground = _ground(interaction)
    opened = lease.open_rows(interaction)
    if ground is None:
        lease.cancel(opened, DistillationReason.CONTRADICTED)
        return
    is_warning = ground.signal == FAILED
    if is_warning:  # a lesson that waits here has been contradicted
        lease.cancel(opened.exclude(signal=FAILED), DistillationReason.CONTRADICTED)
    if conf.current().distiller == "off":
        return
    entered = _enter(interaction, ground.signal) or _return(interaction, ground.signal)
    if entered or (not is_warning and _turn(opened, ground.signal)):
        nudge(DISTILL, interaction)


def _ground(interaction: UUID) -> Verdict | None:
    """The outcome that a distillation may rest on now."""
    pitfalls = conf.current().distill_pitfalls
    columns = ("pk", "source", "sequence", "signal", *(("detail",) if pitfalls else ()))
    rows = list(Outcome.objects.filter(interaction_id=interaction).values_list(*columns, named=True))
    verdicts = [Verdict(id=row.pk, source=row.source, sequence=row.sequence, signal=row.signal) for row in rows]
    ground = ground_of(verdicts)
    if ground is None and pitfalls:
        return pitfall_of(verdicts, {row.pk: row.detail for row in rows})
    return ground


def _enter(interaction: UUID, signal: str) -> bool:
    """Whether the interaction entered the queue: it needs a response, and was never in it."""
    entered = execute(
        "INSERT INTO lesson_distillation (interaction_id, state, signal, attempts, last_error) "
        "SELECT id, 'pending', %s, 0, '' FROM interaction WHERE id = %s AND response ~ '\\S' "
        "ON CONFLICT (interaction_id) DO NOTHING",
        [signal, interaction],
    )
    return entered == 1


def _return(interaction: UUID, signal: str) -> bool:
    """Whether an interaction came back whose distillation a word had cancelled: opinions have changed once more.

    It waits from now on, with all its attempts. A lesson whose work failed comes back as a lesson or not at all.
    """
    cancelled = LessonDistillation.objects.filter(
        pk=interaction,
        state=DistillationState.CANCELLED,
        result_reason=DistillationReason.CONTRADICTED,
        interaction__response__regex=r"\S",
    )
    if signal == FAILED:
        cancelled = cancelled.filter(signal=FAILED)
    returned = cancelled.update(
        state=DistillationState.PENDING,
        signal=signal,
        attempts=0,
        last_error="",
        result_reason=None,
        completed_at=None,
        created_at=Now(),
    )
    return returned == 1


def _turn(opened: "QuerySet[LessonDistillation]", signal: str) -> bool:
    """Whether a warning that was not closed yet became a lesson: what failed was mended. Its worker loses it."""
    turned = opened.filter(signal=FAILED).update(
        state=DistillationState.PENDING, signal=signal, attempts=0, **UNCLAIMED
    )
    return turned == 1


@transaction.atomic
def retry(caller: Caller, interaction: UUID) -> LessonDistillation:
    """An operator gives a failed distillation all its attempts back.

    Raises NotFound outside the account, Conflict if it has not failed or its interaction is no longer worth learning
    from.
    """
    row = _hold(caller, interaction)
    ground = _ground(interaction)
    if row.state != DistillationState.FAILED:
        raise Conflict(f"This distillation is {row.state}; only a failed one can be tried again.")
    if ground is None:
        raise Conflict("The outcomes of this interaction have changed, and none speaks for learning from it any more.")
    LessonDistillation.objects.filter(pk=interaction).update(
        state=DistillationState.PENDING, signal=ground.signal, attempts=0, result_reason=None, completed_at=None
    )
    acts.note(OperatorAction.DISTILLATION_RETRIED, interaction, account_id=caller.account_id, actor=caller.actor)
    log.info("distillation_retried", interaction=str(interaction), actor=caller.actor)
    nudge(DISTILL, interaction)
    return LessonDistillation.objects.get(pk=interaction)


@transaction.atomic
def cancel(caller: Caller, interaction: UUID) -> LessonDistillation:
    """An operator calls a distillation off, also one that a worker is at. Raises NotFound, Conflict if it is closed."""
    row = _hold(caller, interaction)
    if not lease.cancel(lease.open_rows(interaction), DistillationReason.CANCELLED_BY_OPERATOR):
        raise Conflict(f"This distillation is {row.state} already.")
    acts.note(OperatorAction.DISTILLATION_CANCELLED, interaction, account_id=caller.account_id, actor=caller.actor)
    log.info("distillation_cancelled", interaction=str(interaction), actor=caller.actor)
    return LessonDistillation.objects.get(pk=interaction)


def _hold(caller: Caller, interaction: UUID) -> LessonDistillation:
    """The caller's distillation, with the interaction locked as a report locks it and the row against workers."""
    held = Interaction.objects.select_for_update(no_key=True).filter(pk=interaction, account_id=caller.account_id)
    if held.values_list("pk").first() is not None:
        row = LessonDistillation.objects.select_for_update().filter(pk=interaction).first()
        if row is not None:
            return row
    raise NotFound("There is no distillation of such an interaction in your account.")
