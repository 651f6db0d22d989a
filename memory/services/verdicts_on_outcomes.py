"""A human verdict is evidence: judging an interaction in the browser reports an outcome of the source `caller`."""

from typing import Any, Final
from uuid import UUID

from memory.errors import Conflict, Invalid
from memory.models import Adjudication, Interaction, Outcome
from memory.models.vocabulary import OutcomeSource, Signal
from memory.services import outcome
from memory.services.authority import Person
from memory.services.caller import Caller

#: What a person can say of a piece of work; that they cannot tell is no outcome.
SIGNALS: Final = (Signal.ACCEPTED.value, Signal.REJECTED.value)


def judge(interaction_id: UUID, person: Person, signal: str, note: str) -> dict[str, Any]:
    """Reports the person's verdict, with their identity; returns what an undo needs. Raises Invalid or NotFound."""
    if signal not in SIGNALS:
        raise Invalid.field("signal", f"choose one of {', '.join(SIGNALS)}.")
    was = _latest(interaction_id)
    said, _ = outcome.report(_caller(interaction_id, person), interaction_id, signal, note)
    return {"signal": signal, "was": was.signal if was else None, "outcome": str(said.pk)}


def take_back(made: Adjudication, person: Person) -> None:
    """Says again what was said before the verdict, or retracts it. Raises Conflict if somebody judged since."""
    latest = _latest(made.subject)
    if latest is None or str(latest.pk) != made.before["outcome"]:
        raise Conflict("The work was judged again after this verdict, so it cannot be undone.")
    if made.before["was"] == latest.signal:
        return  # the verdict repeated what had been said: there is nothing to take back
    signal = made.before["was"] or Signal.RETRACTED.value
    outcome.report(_caller(made.subject, person), made.subject, signal, "undone in the browser")


def _latest(interaction_id: UUID) -> Outcome | None:
    said = Outcome.objects.filter(interaction_id=interaction_id, source=OutcomeSource.CALLER.value)
    return said.order_by("-sequence").first()


def _caller(interaction_id: UUID, person: Person) -> Caller:
    account = Interaction.objects.values_list("account_id", flat=True).get(pk=interaction_id)
    return Caller(account_id=account, source=OutcomeSource.CALLER.value, actor=person.actor, user_id=person.user_id)
