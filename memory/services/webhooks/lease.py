"""Who sends a delivery: claimed with a token, recorded by the token's holder alone.

    pending -> claimed -> delivered
               claimed -> pending, to be tried again, and after three days failed
    pending, claimed -> cancelled, with the endpoint

Every move is one conditional UPDATE whose row count decides who won. A worker that dies leaves its claim to expire, and
the delivery is sent again: whoever receives it twice knows it by its id.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models import WebhookDelivery
from memory.models.vocabulary import DeliveryState
from memory.rules.webhooks import GIVE_UP_AFTER
from memory.services.leases import UNCLAIMED

OPEN = (DeliveryState.PENDING, DeliveryState.CLAIMED)
#: Longer than any attempt, resolving a name included: a lease that ends early means that somebody is told twice.
LEASE = timedelta(minutes=3)
DUE_AT_ONCE = 100  # deliveries of one endpoint that one look at the queue brings


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to record how one delivery went, for as long as the token stands in its row."""

    delivery: UUID
    token: UUID
    attempt: int  # which one this is, from 1


def claim(delivery: UUID, by: str) -> Claim | None:
    """Takes up a delivery that is due or whose sender has died; None if there is nothing to take up."""
    token = uuid4()
    taken = WebhookDelivery.objects.filter(_due(), pk=delivery).update(
        state=DeliveryState.CLAIMED,
        claim_token=token,
        owner=by,
        claimed_at=Now(),
        lease_expires_at=Now() + LEASE,
        attempts=F("attempts") + 1,
    )
    row = WebhookDelivery.objects.filter(pk=delivery, claim_token=token).first() if taken else None
    return Claim(delivery=delivery, token=token, attempt=row.attempts) if row else None


def finish(claim: Claim, state: DeliveryState, *, status: int | None, error: str = "") -> bool:
    """Closes it; returns whether the claim still held."""
    return _record(claim, state=state, completed_at=Now(), last_status=status, last_error=error)


def give_back(claim: Claim, wait: float, *, status: int | None, error: str) -> bool:
    """Puts it back for another attempt after `wait` seconds; returns whether the claim still held."""
    again = Now() + timedelta(seconds=wait)
    return _record(claim, state=DeliveryState.PENDING, next_attempt_at=again, last_status=status, last_error=error)


def due() -> Iterator[tuple[UUID, list[UUID]]]:
    """Endpoints with deliveries that somebody should send, sound ones first, each with its oldest."""
    waiting = WebhookDelivery.objects.filter(_due())
    endpoints = waiting.order_by(F("endpoint__failing_since").desc(nulls_first=True), "endpoint_id")
    for endpoint in dict.fromkeys(endpoints.values_list("endpoint_id", flat=True).distinct()):
        rows = waiting.filter(endpoint_id=endpoint).order_by("next_attempt_at", "pk")
        yield endpoint, list(rows.values_list("pk", flat=True)[:DUE_AT_ONCE])


def fail_old() -> int:
    """Closes what was tried and is too old to be tried again; returns how many."""
    old = WebhookDelivery.objects.filter(
        state=DeliveryState.PENDING, attempts__gt=0, created_at__lt=Now() - timedelta(seconds=GIVE_UP_AFTER)
    )
    return old.update(state=DeliveryState.FAILED, completed_at=Now())


def _due() -> Q:
    pending = Q(state=DeliveryState.PENDING, next_attempt_at__lte=Now())
    return pending | Q(state=DeliveryState.CLAIMED, lease_expires_at__lt=Now())


def _record(claim: Claim, **columns: object) -> bool:
    held = WebhookDelivery.objects.filter(pk=claim.delivery, claim_token=claim.token)
    return bool(held.update(**columns, **UNCLAIMED))
