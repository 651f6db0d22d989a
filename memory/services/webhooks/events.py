"""What is told: a row for each endpoint that wants to hear, in the transaction of what happened.

A body has ids, kinds, counts and statistics, and the address of the page where a person looks; never a text.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.urls import reverse

from memory.models import Contradiction, Lesson, WebhookDelivery, WebhookEndpoint
from memory.models.base import present, recorded
from memory.models.vocabulary import DeliveryState, TrustEventKind, WebhookEvent
from memory.services.nudge import nudge

#: Of a decision's evidence, what is told: which policy decided, and on which figures.
TOLD: Final = ("policy", "odds", "p_value", "wins", "losses")
QUARANTINES: Final = {
    TrustEventKind.QUARANTINED: "policy",
    TrustEventKind.QUARANTINED_BY_REVIEWER: "person",
}


def quarantined(lesson: UUID, kind: TrustEventKind, evidence: Mapping[str, Any]) -> None:
    """A lesson was taken out of service; another kind of event is nobody's to hear."""
    by = QUARANTINES.get(kind)
    if by is None:
        return
    account = Lesson.objects.values_list("account_id", flat=True).get(pk=lesson)
    data = {
        "lesson": str(lesson),
        "account": _text(account),
        "by": by,
        **{name: evidence[name] for name in TOLD if name in evidence},
        "page": page("lesson", lesson),
    }
    announce(WebhookEvent.QUARANTINED, account, [lesson], data)


def contradictions(found: Iterable[Contradiction]) -> None:
    """Pairs of lessons that nobody knew of before."""
    for row in found:
        data = {
            "contradiction": str(row.pk),
            "account": _text(row.account_id),
            "lessons": [str(row.first), str(row.second)],
            "similarity": row.similarity,
            "basis": row.basis,
            "page": page("contradiction", row.pk),
        }
        announce(WebhookEvent.CONTRADICTION, row.account_id, [row.pk, row.first, row.second], data)


def announce(event: WebhookEvent, account_id: UUID | None, subjects: Iterable[UUID], data: Mapping[str, Any]) -> None:
    """Tells every endpoint that wants to hear of it. What a story tells afterwards has no news in it.

    Those of an account hear of what is its own and of what no account owns: shared lessons are everybody's.
    """
    if isinstance(recorded(), datetime):
        return
    wanting = WebhookEndpoint.objects.filter(events__contains=[event.value], disabled_at__isnull=True)
    named = list(subjects)
    if account_id is not None:
        wanting = wanting.filter(Q(account_id=account_id) | Q(account_id=None))
        named.append(account_id)
    deliver(wanting, event, named, data)


def deliver(
    endpoints: Iterable[WebhookEndpoint], event: WebhookEvent, subjects: Sequence[UUID], data: Mapping[str, Any]
) -> list[WebhookDelivery]:
    """The rows that say what is to be sent; a message makes it sooner."""
    body = {"type": event.value, "timestamp": present().isoformat(), "data": dict(data)}
    rows = [
        WebhookDelivery(
            endpoint=endpoint,
            event=event.value,
            subjects=list(subjects),
            body=body,
            state=DeliveryState.PENDING,
            attempts=0,
        )
        for endpoint in endpoints
    ]
    for row in WebhookDelivery.objects.bulk_create(rows):
        nudge("webhook", row.pk)
    return rows


def page(name: str, *ids: UUID) -> str:
    """The review page of something: its path, after the site's own address where that is known."""
    return next(iter(settings.CSRF_TRUSTED_ORIGINS), "") + reverse(f"review:{name}", args=ids)


def _text(account_id: UUID | None) -> str | None:
    return None if account_id is None else str(account_id)
