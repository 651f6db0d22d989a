"""Holding the question that a person is shown."""

from collections.abc import Iterable

from memory.errors import Conflict, Forbidden
from memory.models import ReviewItem
from memory.services import review_queue
from memory.services.authority import Person


def first_free(items: Iterable[ReviewItem], person: Person, *, named: bool) -> ReviewItem | None:
    """The first of these that the person can hold, held for ten minutes; None if others hold them all.

    One that the address names is shown all the same, whoever holds it; who may not decide is shown the first.
    """
    for item in items:
        try:
            review_queue.claim(item.pk, person)
        except Conflict:
            if not named:
                continue
        except Forbidden:
            pass
        return item
    return None
