"""Says once that the oldest question has waited too long for a reviewer, and once more when it has got worse."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.models import WebhookEndpoint
from memory.models.vocabulary import AlertState, WebhookEvent
from memory.rules.health import STATES, review_state
from memory.services.health.report import Queue
from memory.services.health.store import hours, queues
from memory.services.health.view import View
from memory.services.webhooks.events import deliver, page


def tell(now: datetime) -> int:
    """Tells each endpoint whose account's queue has got worse than it was told; returns how many were.

    The limits are those of the health report. An endpoint that was told is told again after the queue was seen to.
    """
    told = 0
    ages: dict[UUID | None, Queue] = {}
    for endpoint in WebhookEndpoint.objects.filter(
        events__contains=[WebhookEvent.REVIEW_LATE.value], disabled_at__isnull=True
    ):
        account = endpoint.account_id
        if account not in ages:
            (ages[account],) = (q for q in queues(View(account_id=account, now=now)) if q.name == "review")
        told += _tell(endpoint, ages[account], now)
    return told


@transaction.atomic
def _tell(endpoint: WebhookEndpoint, queue: Queue, now: datetime) -> bool:
    waited = hours(now - queue.oldest_at) if queue.oldest_at else 0.0
    state = review_state(waited)
    known = None if state == "healthy" else AlertState(state)
    if known == endpoint.review_told:
        return False
    moved = WebhookEndpoint.objects.filter(pk=endpoint.pk, review_told=endpoint.review_told).update(review_told=known)
    if not moved or _level(known) < _level(endpoint.review_told):
        return False
    data = {
        "account": None if endpoint.account_id is None else str(endpoint.account_id),
        "state": state,
        "waiting": queue.waiting,
        "late": queue.late,
        "oldest_hours": round(waited, 1),
        "page": page("inbox"),
    }
    deliver([endpoint], WebhookEvent.REVIEW_LATE, [], data)
    return True


def _level(state: str | None) -> int:
    return [str(each) for each in STATES].index(state or "healthy")
