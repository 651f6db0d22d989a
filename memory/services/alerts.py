"""What people have seen of the warnings about the store, and say of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from memory.errors import Conflict, Forbidden, Invalid
from memory.models import AlertAcknowledgement
from memory.models.scope import scoped
from memory.models.vocabulary import Role
from memory.rules.health import STATES, Reason
from memory.rules.text import clean
from memory.services.authority import Person
from memory.services.health import HealthReport

NOTE_LIMIT: Final = 1000  # characters
HOLDS: Final = timedelta(weeks=4)  # as far as a report looks back: after it every figure is another

Seen = Mapping[str, AlertAcknowledgement]  # by the warning's name


def acknowledge(person: Person, account_id: UUID | None, alert: str, note: str, made: HealthReport) -> None:
    """Notes that a person has seen a warning of this report, which is of this account or of the whole installation.

    Raises Forbidden, Invalid naming `note`, or Conflict if the report has no such warning any more.
    """
    _need(person, account_id)
    said = clean(note).strip()
    if not 1 <= len(said) <= NOTE_LIMIT:
        raise Invalid.field("note", f"say in 1 to {NOTE_LIMIT:,} characters what becomes of it.")
    reason = next((reason for reason in made.reasons if reason.alert == alert), None)
    if reason is None:
        raise Conflict("This warning is over by now. Nothing was noted.")
    _write(person, account_id, reason.alert, reason.state, said, holds=True)


def mind_again(person: Person, account_id: UUID | None, alert: str, now: datetime) -> None:
    """Takes an acknowledgement back. Raises Forbidden, or Conflict if none holds."""
    _need(person, account_id)
    latest = _latest(account_id, now).get(alert)
    if latest is None or not latest.holds:
        raise Conflict("This warning is not acknowledged any more.")
    _write(person, account_id, alert, latest.state, "taken back", holds=False)


def seen(account_id: UUID | None, reasons: Iterable[Reason], now: datetime) -> Seen:
    """What holds of what was said of these warnings: unless they have worsened, and for four weeks. One query."""
    latest = _latest(account_id, now)
    return {
        reason.alert: found
        for reason in reasons
        if (found := latest.get(reason.alert)) is not None
        and found.holds
        and _level(reason.state) <= _level(found.state)
    }


def _level(state: str) -> int:
    return [str(each) for each in STATES].index(state)


def _latest(account_id: UUID | None, now: datetime) -> Seen:
    rows = AlertAcknowledgement.objects.filter(scoped(account_id), created_at__gt=now - HOLDS).select_related("person")
    newest = rows.order_by("alert", "-created_at", "-id").distinct("alert")
    return {row.alert: row for row in newest}


def _need(person: Person, account_id: UUID | None) -> None:
    if account_id is None and not person.everywhere:
        raise Forbidden("Only an operator speaks for the whole installation.")
    person.need(Role.REVIEWER, account_id)


def _write(person: Person, account_id: UUID | None, alert: str, state: str, note: str, *, holds: bool) -> None:
    AlertAcknowledgement.objects.create(
        account_id=account_id, alert=alert, state=state, note=note, person_id=person.user_id, holds=holds
    )
