"""Lessons that arrive, through the hard gates as everywhere: what was rejected here stays out, whoever brings it."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.contrib.postgres.fields import ArrayField
from django.db.models import CharField, Func, Value

from memory.embedding.active import usable_space
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace, Lesson, LessonEmbedding, LessonTombstone, WriteRefusal
from memory.models.scope import scoped
from memory.models.vocabulary import LessonState
from memory.rules.claim import SIGNATURE_VERSION, ClaimSignature, signature
from memory.rules.text import identifiers
from memory.services import similarity, tombstone
from memory.services.gates import text_gates
from memory.services.importing import SYSTEM
from memory.services.space import embed
from memory.services.transfer.arrival import KEPT, Arrival

PATH: Final = "import_account"  # how the journal of refusals names this way of writing a lesson
REJECTED: Final = "rejected_value"
DUPLICATE: Final = "exact_duplicate"
LIVE: Final = (LessonState.CANDIDATE.value, LessonState.ACTIVE.value)
BATCH: Final = 64  # lessons embedded or compared at once


def admit(arrival: Arrival, row: dict[str, Any]) -> str:
    """Why a lesson that is not here yet does not become a row of its own; '' if it does."""
    verdict = text_gates(row["text"])
    same = Lesson.objects.filter(scoped(row["account_id"]), text_sha256=row["text_sha256"])
    if verdict.refusal:
        refusal = verdict.refusal
    elif tombstone.is_buried(row["account_id"], row["text_sha256"]):
        refusal = REJECTED
    elif (here := same.values_list("pk", flat=True).first()) is not None:
        arrival.same[row["id"]] = here
        return DUPLICATE
    else:
        return ""
    refuse(arrival, row["id"], row["account_id"], refusal, verdict.digest)
    return refusal


def refuse(arrival: Arrival, lesson: UUID, account: UUID | None, refusal: str, digest: str | None) -> None:
    """Notes that a lesson stays out, as every path does that can write one."""
    arrival.refused[lesson] = refusal
    WriteRefusal.objects.create(account_id=account, path=PATH, reason=refusal, digest=digest, actor=SYSTEM)


def complete(row: dict[str, Any]) -> dict[str, Any]:
    """A row with what is computed from its text."""
    claim = signature(row["text"]).to_json()
    words = Value(identifiers(row["text"]), output_field=ArrayField(CharField()))
    return {
        **row,
        "polarity": claim["polarity"],
        "anchors": claim["anchors"],
        "identifiers": Func(words, function="array_to_tsvector"),
    }


def stands(arrival: Arrival, lesson: UUID) -> str:
    """Why what tells of a lesson does not arrive with it; '' if it does."""
    if lesson in arrival.refused:
        return arrival.refused[lesson]
    return "" if lesson in arrival.new["lesson"] else KEPT


def bury(arrival: Arrival, row: dict[str, Any]) -> str:
    """Why a tombstone does not arrive: its lesson is here, and is what it is here, or the value is served or buried."""
    there = Lesson.objects.filter(pk=row["source_lesson"]).exclude(pk__in=arrival.new["lesson"]).exists()
    served = Lesson.objects.filter(scoped(row["account_id"]), text_sha256=row["text_sha256"], state__in=LIVE).exists()
    if row["source_lesson"] in arrival.refused or row["source_lesson"] in arrival.same or there or served:
        return KEPT
    return KEPT if tombstone.is_buried(row["account_id"], row["text_sha256"]) else ""


def sign(arrival: Arrival, row: dict[str, Any]) -> dict[str, Any]:
    """A tombstone signed by this installation, where its lesson has come along; else as it was signed there."""
    lesson = Lesson.objects.filter(pk=row["source_lesson"], pk__in=arrival.new["lesson"]).first()
    if lesson is None or lesson.text_sha256 != row["text_sha256"]:
        return row
    claim = ClaimSignature.from_json({"polarity": lesson.polarity, "anchors": lesson.anchors})
    return {
        **row,
        "polarity": dict(claim.polarity),
        "anchor_macs": tombstone.anchor_macs(claim.anchors),
        "signature_version": SIGNATURE_VERSION,
        "mac_key_id": tombstone.mac_key_id(),
    }


def compare(arrival: Arrival) -> None:
    """Once their vectors are here: what repeats a value that was rejected here stays out, in whatever words."""
    try:
        space = usable_space()
        for batch in _batches(arrival.new["lesson"]):
            have = LessonEmbedding.objects.filter(lesson__in=batch, space=space).values("lesson")
            embed(list(Lesson.objects.filter(pk__in=batch).exclude(pk__in=have)), space)
    except EmbeddingUnavailable as refusal:
        arrival.unembedded = refusal.detail
        return
    if LessonTombstone.objects.filter(space=space).exists():
        for batch in _batches(arrival.new["lesson"]):
            _drop(arrival, [lesson for lesson in _live(batch, space) if _is_rejected(*lesson, space)])


def _live(ids: Collection[UUID], space: EmbeddingSpace) -> list[tuple[Lesson, Any]]:
    rows = LessonEmbedding.objects.filter(lesson__in=ids, space=space, state__in=LIVE).select_related("lesson")
    return [(row.lesson, row.embedding) for row in rows]


def _is_rejected(lesson: Lesson, vector: Any, space: EmbeddingSpace) -> bool:
    claim = similarity.stored_claim(lesson.polarity, lesson.anchors)
    unit = np.asarray(vector.to_list() if hasattr(vector, "to_list") else vector, dtype=np.float32)
    return similarity.matching_tombstone(unit, claim, lesson.account_id, space) is not None


def _drop(arrival: Arrival, lessons: Sequence[tuple[Lesson, Any]]) -> None:
    """Takes lessons out again that have just come in; nothing refers to them yet but their vectors."""
    for lesson, _ in lessons:
        refuse(arrival, lesson.pk, lesson.account_id, REJECTED, lesson.text_sha256)
        arrival.new["lesson"].discard(lesson.pk)
    ids = [lesson.pk for lesson, _ in lessons]
    for kind, rows in (
        ("lesson_embedding", LessonEmbedding.objects.filter(lesson__in=ids)),
        ("lesson", Lesson.objects.filter(pk__in=ids)),
    ):
        arrived = len(ids) if kind == "lesson" else rows.filter(pk__in=arrival.new[kind]).count()
        rows.delete()
        arrival.moved[kind].imported -= arrived
        for _ in range(arrived):
            arrival.moved[kind].skip(REJECTED)


def _batches(ids: Collection[UUID]) -> Iterator[list[UUID]]:
    rest = iter(sorted(ids))
    while batch := list(islice(rest, BATCH)):
        yield batch
