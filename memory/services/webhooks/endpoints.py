"""Who wants to hear of what: made by an operator, with a secret that is shown once."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memory import conf
from memory.errors import Conflict, Invalid, NotFound
from memory.models import WebhookDelivery, WebhookEndpoint
from memory.models.vocabulary import DeliveryState, DisabledBecause
from memory.models.webhook import CHOSEN_EVENTS
from memory.rules import webhooks as rules
from memory.services.leases import UNCLAIMED
from memory.services.webhooks.lease import OPEN

MAX_DESCRIPTION = 200  # characters, as the column holds


@dataclass(frozen=True, kw_only=True)
class NewEndpoint:
    """An endpoint at the only moment when its secret is told."""

    endpoint: WebhookEndpoint
    secret: str  # as a receiver's library takes it


def signing_key() -> bytes:
    """The key of the signing secrets, derived from the installation's secret for this one purpose."""
    return hmac.digest(settings.SECRET_KEY.encode(), b"sonder webhook secrets", "sha256")


def key_id() -> str:
    """Names that key without telling it, so that endpoints of a lost secret are recognised."""
    return hashlib.sha256(b"id:" + signing_key()).hexdigest()[:16]


def secret_of(endpoint: WebhookEndpoint) -> bytes:
    """What its deliveries are signed with."""
    return rules.secret_of(signing_key(), endpoint.salt)


def add(*, account_id: UUID | None, url: str, events: Iterable[str], description: str = "") -> NewEndpoint:
    """A new endpoint of an account, or without one of the whole installation.

    Raises Invalid naming `url`, `events` or `description`. Where a name leads is looked at when something is sent, not
    here: it may be another address by then.
    """
    wanted = list(dict.fromkeys(events))
    if not wanted or not set(wanted) <= set(CHOSEN_EVENTS):
        raise Invalid.field("events", f"choose from {', '.join(CHOSEN_EVENTS)}.")
    if len(description) > MAX_DESCRIPTION or not (description.isprintable() or not description):
        raise Invalid.field("description", f"use at most {MAX_DESCRIPTION} printable characters.")
    check_url(url)
    endpoint = WebhookEndpoint.objects.create(
        account_id=account_id,
        url=url,
        events=wanted,
        description=description,
        salt=secrets.token_hex(32),
        key_id=key_id(),
    )
    return NewEndpoint(endpoint=endpoint, secret=rules.written(secret_of(endpoint)))


def check_url(url: str) -> None:
    """Raises Invalid naming `url` where nothing can be sent to it, whatever its host is."""
    try:
        where = rules.target(url)
    except ValueError as error:
        raise Invalid.field("url", str(error)) from None
    allowed = rules.networks(conf.current().webhook_networks)
    if where.scheme == "http" and not any(network.is_loopback for network in allowed):
        raise Invalid.field("url", "use https; plain http is for loopback, where SONDER_WEBHOOK_NETWORKS allows it.")


def find(endpoint_id: UUID) -> WebhookEndpoint:
    """Raises NotFound."""
    found = WebhookEndpoint.objects.filter(pk=endpoint_id).select_related("account").first()
    if found is None:
        raise NotFound("There is no such endpoint. `webhook list` names those that there are.")
    return found


@transaction.atomic
def disable(endpoint_id: UUID, because: DisabledBecause) -> bool:
    """Switches an endpoint off and cancels what waits for it; returns whether it was on.

    One that went off by itself is the operator's own from then on, and nothing to be warned of.
    """
    rows = WebhookEndpoint.objects.filter(pk=endpoint_id)
    changed = rows.filter(disabled_at__isnull=True).update(disabled_at=Now(), disabled_because=because.value)
    if because == DisabledBecause.OPERATOR:
        rows.update(disabled_because=because.value)
    cancel(WebhookDelivery.objects.filter(endpoint_id=endpoint_id))
    return bool(changed)


def enable(endpoint_id: UUID) -> bool:
    """Switches it on again, with a clean slate; returns whether it was off. Raises Conflict if it cannot sign."""
    if find(endpoint_id).key_id != key_id():
        raise Conflict("The installation's secret is another than when this was made. Add a new endpoint.")
    rows = WebhookEndpoint.objects.filter(pk=endpoint_id, disabled_at__isnull=False)
    return bool(rows.update(disabled_at=None, disabled_because=None, failing_since=None))


def cancel(deliveries: "QuerySet[WebhookDelivery]") -> int:
    """Cancels those that are not done; a worker that is at one loses it. Returns how many."""
    waiting = deliveries.filter(state__in=OPEN)
    return waiting.update(state=DeliveryState.CANCELLED, completed_at=Now(), **UNCLAIMED)
