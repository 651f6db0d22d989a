"""Where each thing is looked at."""

from typing import Final
from uuid import UUID

from django.urls import reverse

from memory.models.vocabulary import ReviewKind
from review.context import QUEUES

QUEUE_OF: Final = {kind.value: queue for queue, kinds in QUEUES.items() for kind in kinds}


def queue_url(queue: str) -> str:
    """A queue's page."""
    return reverse(f"review:{queue}")


def item_url(kind: str, item: UUID, subject: UUID) -> str:
    """Where a question is answered: at its lesson's evidence, or in the queue of its kind."""
    if kind == ReviewKind.SECOND_OPINION:  # its card is blind, a lesson's own page is not
        return reverse("review:item", args=[item])
    if kind == ReviewKind.QUARANTINE:
        return reverse("review:lesson", args=[subject])
    return f"{queue_url(QUEUE_OF[kind])}?item={item}"


#: What each kind of question is called.
KINDS: Final[dict[str, str]] = {
    ReviewKind.NEW_LESSON: "New lesson",
    ReviewKind.QUARANTINE: "Quarantine",
    ReviewKind.CONTRADICTION: "Contradiction",
    ReviewKind.NEAR_DUPLICATE: "Near duplicate",
    ReviewKind.VAGUE: "Vague lesson",
    ReviewKind.STALE: "Stale lesson",
    ReviewKind.OUTCOME_NEEDED: "Outcome to judge",
    ReviewKind.OUTCOME_CONFLICT: "Judges disagree",
    ReviewKind.SECOND_OPINION: "Second opinion",
}
