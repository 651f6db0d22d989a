"""One attempt at a delivery, and what follows from it; and the sweep over all that are due.

The receiver is asked outside any transaction. A worker that dies after the receiver has taken a delivery and before
that is recorded leads to a second one with the same `webhook-id`: at least once, never not at all.
"""

import json
import time
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from memory import conf
from memory.models import WebhookDelivery, WebhookEndpoint
from memory.models.vocabulary import DeliveryState, DisabledBecause, WebhookEvent
from memory.rules import webhooks as rules
from memory.services.leases import owner
from memory.services.webhooks import lease
from memory.services.webhooks.endpoints import disable, key_id, secret_of
from memory.services.webhooks.events import deliver
from memory.services.webhooks.lease import Claim
from memory.services.webhooks.transport import Answer, Undelivered, post

SWEEP_SECONDS: Final = 200.0  # after which a sweep takes up no more, so that it ends well before a task's time limit
GONE: Final = 410
REDIRECTS: Final = range(300, 400)
CANNOT_SIGN: Final = "It was made under another secret of the installation and cannot sign. Add a new endpoint."

log = structlog.get_logger(__name__)


def send_announced(delivery: UUID, task: str = "") -> DeliveryState | None:
    """Sends a new delivery, unless its endpoint is failing: then the sweep tries it, one at a time."""
    sound = WebhookDelivery.objects.filter(pk=delivery, endpoint__failing_since__isnull=True)
    return send(delivery, task) if sound.exists() else None


def send(delivery: UUID, task: str = "") -> DeliveryState | None:
    """One attempt; `task` names the worker's. Returns the state it leaves; None if it is not due or another's."""
    claim = lease.claim(delivery, owner(task))
    row = WebhookDelivery.objects.select_related("endpoint").filter(pk=delivery).first() if claim else None
    if claim is None or row is None:
        return None
    endpoint = row.endpoint
    if endpoint.disabled_at is not None:
        return _closed(claim, DeliveryState.CANCELLED)
    if endpoint.key_id != key_id():
        return _closed(claim, DeliveryState.FAILED, CANNOT_SIGN)
    try:
        answer = _post(row)
    except Undelivered as refusal:
        return _failed(claim, row, None, str(refusal))
    if 200 <= answer.status < 300:
        return _delivered(claim, endpoint, answer.status)
    return _failed(claim, row, answer, _about(answer.status))


def sweep(task: str = "") -> dict[str, int]:
    """Sends what no message announced, what is to be tried again, and what a dead worker left; returns the figures.

    Of an endpoint that fails the others wait for the next sweep, so that one that hangs holds up nobody.
    """
    figures = {"given_up": lease.fail_old(), "delivered": 0, "failed": 0}
    end = time.monotonic() + SWEEP_SECONDS
    for _, deliveries in lease.due():
        for delivery in deliveries:
            if time.monotonic() > end:
                return figures
            state = send(delivery, task)
            figures["delivered"] += state == DeliveryState.DELIVERED
            if state in (DeliveryState.PENDING, DeliveryState.FAILED):
                figures["failed"] += 1
                break
    return figures


def try_out(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Sends a test now and returns how it went. It is a delivery like others: what fails is tried again."""
    (row,) = deliver([endpoint], WebhookEvent.TEST, [], {"endpoint": str(endpoint.pk)})
    send(row.pk, "test")
    row.refresh_from_db()
    return row


def _post(row: WebhookDelivery) -> Answer:
    """Raises Undelivered."""
    body = json.dumps(row.body, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    message, now = str(row.pk), int(time.time())
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "Sonder"),
        ("webhook-id", message),
        ("webhook-timestamp", str(now)),
        ("webhook-signature", rules.signature(secret_of(row.endpoint), message, now, body)),
    ]
    try:
        target = rules.target(row.endpoint.url)
    except ValueError as error:
        raise Undelivered(f"Its address is not to be used: {error}") from None
    return post(target, headers, body, allowed=rules.networks(conf.current().webhook_networks))


def _about(status: int) -> str:
    if status in REDIRECTS:
        return f"It answered HTTP {status}; redirects are not followed. Enter the address that it leads to."
    return f"It answered HTTP {status}."


def _closed(claim: Claim, state: DeliveryState, error: str = "") -> DeliveryState | None:
    return state if lease.finish(claim, state, status=None, error=error) else None


@transaction.atomic
def _delivered(claim: Claim, endpoint: WebhookEndpoint, status: int) -> DeliveryState | None:
    held = lease.finish(claim, DeliveryState.DELIVERED, status=status)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(delivered_at=Now(), failing_since=None)
    return DeliveryState.DELIVERED if held else None


@transaction.atomic
def _failed(claim: Claim, row: WebhookDelivery, answer: Answer | None, error: str) -> DeliveryState | None:
    """Puts it back, or gives it up when it is too old; an endpoint that has failed for days is switched off."""
    status, endpoint = (answer.status, row.endpoint) if answer else (None, row.endpoint)
    wait = rules.wait_after(row.pk, claim.attempt, answer.retry_after if answer else None)
    age = (timezone.now() - row.created_at).total_seconds()
    if status == GONE or rules.gives_up(age, wait):
        state, held = DeliveryState.FAILED, lease.finish(claim, DeliveryState.FAILED, status=status, error=error)
    else:
        state, held = DeliveryState.PENDING, lease.give_back(claim, wait, status=status, error=error)
    if not held:
        return None
    log.warning("webhook_not_delivered", delivery=str(row.pk), endpoint=str(endpoint.pk), state=state, reason=error)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(failing_since=Coalesce(F("failing_since"), Now()))
    since = WebhookEndpoint.objects.values_list("failing_since", flat=True).get(pk=endpoint.pk)
    if status == GONE:
        disable(endpoint.pk, DisabledBecause.GONE)
    elif since and (timezone.now() - since).total_seconds() > rules.DISABLE_AFTER:
        disable(endpoint.pk, DisabledBecause.FAILING)
    return state
