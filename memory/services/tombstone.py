"""Tombstones: what was rejected stays rejected, remembered without its content."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.conf import settings

from memory.models import EmbeddingSpace, Lesson, LessonEmbedding, LessonTombstone
from memory.models.scope import scoped
from memory.models.sql import execute, fetch
from memory.models.vocabulary import TombstoneReason
from memory.rules.claim import SIGNATURE_VERSION, ClaimSignature, same_claim

# The vector in a space of the lesson that left tombstone t, where t has none there and the lesson says what it said.
_ITS_VECTOR = """
    lesson_embedding e JOIN lesson l ON l.id = e.lesson_id
    WHERE e.lesson_id = t.source_lesson AND e.space_id = %s AND l.text_sha256 = t.text_sha256
        AND t.space_id IS DISTINCT FROM e.space_id
"""


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


def write(lesson_id: UUID, reason: TombstoneReason, successor: UUID | None = None) -> None:
    """Buries a lesson's value; `successor` is the lesson that takes its place, if one does.

    A value that is buried already stays as it is, unless it was only quarantined: what evidence may lift gives way to
    what a person or a plan decided.
    """
    lesson = Lesson.objects.get(pk=lesson_id)
    signature = ClaimSignature.from_json({"polarity": lesson.polarity, "anchors": lesson.anchors})
    vector = LessonEmbedding.objects.filter(lesson=lesson, space__is_active=True).first()
    buried, new = LessonTombstone.objects.get_or_create(
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
            "successor_lesson": successor,
            "source_interaction": lesson.source_interaction,
        },
    )
    if not new and buried.reason == TombstoneReason.QUARANTINED.value:
        LessonTombstone.objects.filter(pk=buried.pk).update(reason=reason.value, successor_lesson=successor)


def lift(lesson_id: UUID, *reasons: TombstoneReason) -> int:
    """Removes the tombstones that this lesson left for these reasons; returns how many."""
    wanted = [reason.value for reason in reasons]
    return LessonTombstone.objects.filter(source_lesson=lesson_id, reason__in=wanted).delete()[0]


def inherit(successor: UUID, heir: UUID) -> list[UUID]:
    """What a lesson took the place of, another takes the place of now; returns the tombstones concerned."""
    found = LessonTombstone.objects.filter(successor_lesson=successor)
    ids = list(found.values_list("pk", flat=True))
    found.update(successor_lesson=heir)
    return ids


def follow(space: EmbeddingSpace) -> int:
    """Gives tombstones their value's vector in a space where the lesson row still stands and has one.

    For a change of model, and for what was buried before it was embedded. Returns how many moved.
    """
    return execute(
        f"""
        UPDATE lesson_tombstone t SET embedding = e.embedding, space_id = e.space_id
        FROM {_ITS_VECTOR}
        """,
        [space.pk],
    )


def that_can_follow(space: EmbeddingSpace) -> int:
    """How many tombstones `follow` would give a vector."""
    ((waiting,),) = fetch(f"SELECT count(*) FROM lesson_tombstone t, {_ITS_VECTOR}", [space.pk])
    return int(waiting)


def left_behind(space: EmbeddingSpace) -> int:
    """How many tombstones have no vector in this space: they refuse their very value, and no paraphrase of it."""
    return LessonTombstone.objects.exclude(space=space).count()


def is_buried(account_id: UUID | None, text_sha256: str) -> bool:
    """Whether this very value was rejected in this scope."""
    return LessonTombstone.objects.filter(scoped(account_id), text_sha256=text_sha256).exists()


def is_readable(buried: LessonTombstone) -> bool:
    """Whether its anchors were signed by this installation's key, and its claim by the present grammar."""
    return buried.mac_key_id == mac_key_id() and buried.signature_version == SIGNATURE_VERSION


def first_conflict(tombstones: Sequence[UUID], signature: ClaimSignature) -> UUID | None:
    """The first of these tombstones that a text of this signature makes the same claim as; None if none.

    Anchors are compared by their MACs. A tombstone that cannot be read counts as the same claim: it refuses.
    """
    keyed = _keyed(signature.polarity, anchor_macs(signature.anchors))
    found = LessonTombstone.objects.in_bulk(list(tombstones))
    for pk in tombstones:
        buried = found.get(pk)
        if buried is None:
            continue
        if not is_readable(buried) or same_claim(keyed, _keyed(buried.polarity, buried.anchor_macs)).same:
            return pk
    return None


def _keyed(polarity: Mapping[str, int], macs: Mapping[str, Iterable[str]]) -> ClaimSignature:
    """A claim with MACs in the place of anchors: equal anchors have equal MACs, so that the same rule compares them."""
    return ClaimSignature(polarity=polarity, anchors={kind: frozenset(values) for kind, values in macs.items()})
