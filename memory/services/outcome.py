"""Outcomes: durable before the answer, and credited in the background."""

from uuid import UUID

from django.db import transaction

from memory.errors import Invalid, NotFound
from memory.models import Interaction, Outcome
from memory.rules.signals import RETRACTED, SIGNALS, reward_of
from memory.services import distillation
from memory.services.caller import Caller
from memory.services.nudge import nudge

CREDIT = "credit"


@transaction.atomic
def report(caller: Caller, interaction_id: UUID, signal: str, detail: str = "") -> tuple[Outcome, bool]:
    """Records what the caller's source says now; returns the row and whether it is new.

    The source comes from the credential, the reward from the signal. The latest signal of a source said again is no
    new row. Raises NotFound for another account's interaction, Invalid naming `signal`.
    """
    if signal not in SIGNALS:
        raise Invalid.field("signal", f"choose one of {', '.join(SIGNALS)}.")
    # The row lock makes two reports on one interaction take turns, so that `sequence` counts.
    held = Interaction.objects.select_for_update(no_key=True).filter(pk=interaction_id, account_id=caller.account_id)
    if held.values_list("pk").first() is None:
        raise NotFound("There is no such interaction in your account.")
    latest = Outcome.objects.filter(interaction_id=interaction_id, source=caller.source).order_by("-sequence").first()
    if latest is not None and latest.signal == signal:
        return latest, False
    if latest is None and signal == RETRACTED:
        raise Invalid.field("signal", f"'{caller.source}' has said nothing here that it could retract.")
    outcome = Outcome.objects.create(
        interaction_id=interaction_id,
        source=caller.source,
        sequence=latest.sequence + 1 if latest else 1,
        signal=signal,
        reward=reward_of(signal),
        api_key_id=caller.key_id,
        judge_id=caller.user_id,
        detail=detail,
    )
    distillation.consider(interaction_id)
    nudge(CREDIT, interaction_id)
    return outcome, True
