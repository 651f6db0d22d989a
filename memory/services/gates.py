"""The gates that a text passes on its way to being a lesson.

Hard gates hold on every path that can write a lesson. Quality gates hold on automatic paths; an operator or reviewer
may pass them, and the lesson is then flagged for review.
"""

from dataclasses import dataclass
from uuid import UUID

from memory.models import Lesson
from memory.models.scope import scoped
from memory.rules import text as texts
from memory.rules.concreteness import judge
from memory.rules.privacy import find_private
from memory.services import tombstone

MAX_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the gates say of a text."""

    refusal: str = ""  # reason of the hard gate that refuses it; empty if none does
    flags: tuple[str, ...] = ()  # quality gates that it fails
    details: tuple[str, ...] = ()  # what exactly, for the person who reads the report; never the text
    digest: str | None = None  # of the normalised text; None if nothing is left of it


def hard_gates(text: str, account_id: UUID | None) -> Verdict:
    """The first hard gate that refuses the text: empty, too_long, private, rejected_value or exact_duplicate."""
    try:
        digest = texts.digest(text)
    except texts.EmptyText:
        return Verdict(refusal="empty")
    if len(text) > MAX_CHARACTERS:
        return Verdict(refusal="too_long", digest=digest, details=(f"over {MAX_CHARACTERS} characters",))
    if private := find_private(text):
        # The digest of a text that holds a secret could be used to guess the secret, so none is kept.
        return Verdict(refusal="private", details=private)
    if tombstone.is_buried(account_id, digest):
        return Verdict(refusal="rejected_value", digest=digest)
    if Lesson.objects.filter(scoped(account_id), text_sha256=digest).exists():
        return Verdict(refusal="exact_duplicate", digest=digest)
    return Verdict(digest=digest)


def quality_gates(text: str) -> Verdict:
    """Whether the text is concrete enough to be of use."""
    judgement = judge(text)
    return Verdict(flags=() if judgement.concrete else ("vague",), details=judgement.reasons)
