"""The warnings of a report: what somebody should look at, and what somebody has."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.models import AlertAcknowledgement
from memory.rules.health import Reason
from memory.services import alerts
from review.accounts import Choice


@dataclass(frozen=True, kw_only=True)
class Warnings:
    """The reasons of a report, worst first."""

    fresh: Sequence[Reason]
    seen: Sequence[tuple[Reason, AlertAcknowledgement]]


def warnings(choice: Choice, reasons: Sequence[Reason], now: datetime) -> Warnings:
    """What is acknowledged stands apart. One query."""
    known = alerts.seen(choice.account_id, reasons, now)
    return Warnings(
        fresh=[reason for reason in reasons if reason.alert not in known],
        seen=[(reason, known[reason.alert]) for reason in reasons if reason.alert in known],
    )
