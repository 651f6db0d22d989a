"""What every review page shows beside its own: the queues, the person, how they like the pages, the last message."""

from typing import Any

from django.contrib.messages import get_messages
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from memory.models import ReviewItem
from memory.models.vocabulary import ReviewKind, ReviewStatus
from memory.services.adjudication import latest_undoable
from memory.services.demo import story
from review.access import person_of, visible
from review.keys import KEYS
from review.models import Look

INBOX = (ReviewKind.NEW_LESSON, ReviewKind.VAGUE, ReviewKind.NEAR_DUPLICATE, ReviewKind.STALE)
#: Which questions each queue holds.
QUEUES: dict[str, tuple[ReviewKind, ...]] = {
    "inbox": INBOX,
    "quarantine": (ReviewKind.QUARANTINE, ReviewKind.SECOND_OPINION),
    "contradictions": (ReviewKind.CONTRADICTION,),
    "outcomes": (ReviewKind.OUTCOME_NEEDED, ReviewKind.OUTCOME_CONFLICT),
}


def review(request: HttpRequest) -> dict[str, Any]:
    """Context of the review pages; nothing is read for pages that do not use it."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {"look": Look()}
    return {
        "person": SimpleLazyObject(lambda: person_of(request)),
        "look": SimpleLazyObject(lambda: Look.objects.filter(user=request.user.pk).first() or Look()),
        "rail": SimpleLazyObject(lambda: _rail(request)),
        "messages_now": SimpleLazyObject(lambda: _messages(request)),
        "undoable": SimpleLazyObject(lambda: next(iter(latest_undoable(person_of(request), 1)), None)),
        "demo_account": SimpleLazyObject(story.is_there),
    }


def _messages(request: HttpRequest) -> list[Any]:
    """What the last requests said. One that was sent again, because its answer was lost, has said the same again."""
    return list({(each.message, each.extra_tags): each for each in get_messages(request)}.values())


def waiting(request: HttpRequest) -> dict[str, int]:
    """How many questions are open in each queue, in one query."""
    rows = ReviewItem.objects.filter(visible(request), status=ReviewStatus.OPEN.value)
    counts = dict(rows.order_by().values_list("kind").annotate(Count("pk")))
    return {name: sum(counts.get(kind.value, 0) for kind in kinds) for name, kinds in QUEUES.items()}


def _rail(request: HttpRequest) -> list[dict[str, Any]]:
    counts, path = waiting(request), request.path
    rows = []
    for key in KEYS:
        if key.scope == "go":
            url = reverse(f"review:{key.action}")
            current = path == url or (key.action != "dashboard" and path.startswith(url))
            rows.append(
                {
                    "name": key.action,
                    "label": key.label,
                    "url": url,
                    "current": current,
                    "count": counts.get(key.action),
                }
            )
    return rows
