"""Who has the question on a page. Looking takes nothing: the page's script asks to hold what it shows."""

from typing import Any

from django.utils import timezone

from memory.models import ReviewItem
from memory.services.authority import Person
from memory.services.bulk_decisions import holder_of
from memory.services.questions import UNRESOLVED


def holding(item: ReviewItem | None, person: Person, *, may: bool, here: str) -> dict[str, Any]:
    """What parts/hold.html shows: somebody else who is at the question, or that it can be held.

    `may` is whether the person may answer it, `here` where they go on after taking it over.
    """
    waits = item is not None and item.status in UNRESOLVED
    holder = holder_of(item, person.user_id) if item is not None and waits else ""
    until = item.claim_expires_at if item is not None and waits else None
    return {
        "holder": holder,
        "until": until,
        "mine": bool(until and not holder and until > timezone.now()),
        "may_hold": may and waits,
        "why_not": f"{holder} is reviewing this. Take it over to decide." if holder else "",
        "here": here,
    }
