"""Tombstones: what was rejected stays rejected, remembered without its content."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from uuid import UUID

from django.conf import settings

from memory.models import Lesson, LessonEmbedding, LessonTombstone
from memory.models.scope import scoped
from memory.models.vocabulary import TombstoneReason
from memory.rules.claim import SIGNATURE_VERSION, ClaimSignature


def mac_key() -> bytes:
    """The key of the anchor MACs, derived from the installation's secret for this one purpose."""
    return hmac.digest(settings.SECRET_KEY.encode(), b"sonder tombstone anchors", "sha256")


def mac_key_id() -> str:
    """Names the key without telling it, so that signatures of a lost secret are recognised."""
    return hashlib.sha256(b"id:" + mac_key()).hexdigest()[:16]


def anchor_macs(anchors: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """HMAC-SHA-256 (RFC 2104) of each normalised anchor, by kind: comparable, not readable."""
    key = mac_key()
    return {
        kind: sorted(hmac.digest(key, f"{kind}:{anchor}".encode(), "sha256").hex() for anchor in values)
        for kind, values in sorted(anchors.items())
    }


def write(lesson_id: UUID, reason: TombstoneReason) -> None:
    """Buries a lesson's value. A value that is buried already stays as it is."""
    lesson = Lesson.objects.get(pk=lesson_id)
    signature = ClaimSignature.from_json({"polarity": lesson.polarity, "anchors": lesson.anchors})
    vector = LessonEmbedding.objects.filter(lesson=lesson, space__is_active=True).first()
    LessonTombstone.objects.get_or_create(
        account=lesson.account,
        text_sha256=lesson.text_sha256,
        defaults={
            "embedding": vector.embedding if vector else None,
            "space_id": vector.space_id if vector else None,
            "polarity": dict(signature.polarity),
            "anchor_macs": anchor_macs(signature.anchors),
            "signature_version": SIGNATURE_VERSION,
            "mac_key_id": mac_key_id(),
            "reason": reason.value,
            "source_lesson": lesson.pk,
            "source_interaction": lesson.source_interaction,
        },
    )


def lift(lesson_id: UUID, reason: TombstoneReason) -> int:
    """Removes the tombstones that this lesson left for this reason; returns how many."""
    return LessonTombstone.objects.filter(source_lesson=lesson_id, reason=reason.value).delete()[0]


def is_buried(account_id: UUID | None, text_sha256: str) -> bool:
    """Whether this very value was rejected in this scope."""
    return LessonTombstone.objects.filter(scoped(account_id), text_sha256=text_sha256).exists()
