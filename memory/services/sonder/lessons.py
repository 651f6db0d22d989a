"""Lessons, through the same gates as everywhere, and the values that the old store had rejected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction

from memory.models import ImportedRow, Lesson, LessonEmbedding, LessonTombstone, WriteRefusal
from memory.models.base import new_id
from memory.models.scope import scoped
from memory.models.sql import execute
from memory.models.vocabulary import LessonState, Origin, ReviewPolicy, TombstoneReason
from memory.rules.claim import SIGNATURE_VERSION
from memory.services import tombstone
from memory.services.gates import Meaning, text_gates
from memory.services.importing import SYSTEM, embed_new
from memory.services.lesson import NewLesson, Written, store
from memory.services.sonder import values
from memory.services.sonder.job import GONE, Job, Known, each, if_there
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import Skipped
from memory.services.sonder.vectors import Placed, placed, vector_of

PATH: Final = "import_sonder"  # how the journal of refusals names this way of writing a lesson
DUPLICATE: Final = "exact_duplicate"
REJECTED: Final = "rejected_value"
DIGEST: Final = 64  # hexadecimal digits


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A lesson of the file that may be taken over."""

    legacy: str
    text: str
    at: datetime
    source: UUID | None  # the interaction that it was learned from, if that is here
    lies: Placed | None  # in the space of the model that embedded it there


def lessons(job: Job, rows: Sequence[Row]) -> None:
    """A batch of lessons. The model is asked outside of the transaction that stores them."""
    known = job.known("lesson", (row.get("id") for row in rows))
    sources = job.known("interaction", (row.get("source_interaction") for row in rows))
    wanted: dict[str, Candidate] = {}

    def look(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if legacy in wanted:
            raise Skipped("repeated")
        if not _is_new(job, known.get(legacy), row):
            return False
        wanted[legacy] = _candidate(job, legacy, row, if_there(sources, row.get("source_interaction")))
        return True

    each(job, "lessons", rows, look)
    meanings = _meanings(job, wanted.values())
    with transaction.atomic():
        _note(job, [(c, *_stored(job, c, meanings.get(c.legacy))) for c in wanted.values()])


def _is_new(job: Job, earlier: Known | None, row: Row) -> bool:
    """Whether the gates have to look at a row. Raises Skipped if they did, and would say the same again."""
    if earlier is None:
        return True
    if earlier.subject is not None:
        if not earlier.alive:
            raise Skipped(GONE)
        if earlier.refusal:
            raise Skipped(earlier.refusal)
        return False
    if _refusal(job, values.said(row.get("text"))) == earlier.refusal:
        raise Skipped(earlier.refusal)
    return True


def _refusal(job: Job, text: str) -> str:
    """Why a text is refused, as far as that can be told without a model."""
    verdict = text_gates(text.strip())
    if verdict.refusal or verdict.digest is None:
        return verdict.refusal
    is_rejected = values.old_digest(text) in job.buried or tombstone.is_buried(job.scope, verdict.digest)
    return REJECTED if is_rejected else ""


def _candidate(job: Job, legacy: str, row: Row, source: UUID | None) -> Candidate:
    text = values.needed(row.get("text")).strip()
    at = values.moment(row.get("ts"), job.now)
    if source is None:
        job.report.notes["lessons whose source is no interaction of the file"] += 1
    return Candidate(legacy=legacy, text=text, at=at, source=source, lies=placed(job, vector_of(row, "embedding")))


def _meanings(job: Job, candidates: Iterable[Candidate]) -> dict[str, Meaning]:
    """Where the new lessons lie in the active space: as the file says, if it is of that space, else as the model."""
    asked: dict[str, str] = {}
    found: dict[str, Meaning] = {}
    for candidate in candidates:
        if candidate.lies is not None and candidate.lies.space.is_active:
            found[candidate.legacy] = Meaning(vector=candidate.lies.unit, space=candidate.lies.space)
        else:
            asked[candidate.legacy] = candidate.text
    if job.embed and asked and not job.report.unembedded:
        embedded, job.report.unembedded = embed_new(asked, job.scope)
        found |= embedded
    return found


def _note(job: Job, taken: Sequence[tuple[Candidate, UUID | None, str]]) -> None:
    """What each is here. What the gates refused is told of where it had been counted as imported."""
    for candidate, _, refusal in taken:
        if refusal:
            job.report.tables["lessons"].imported -= 1
            job.report.skip("lessons", candidate.legacy, refusal)
    ImportedRow.objects.bulk_create(
        [
            ImportedRow(
                account=job.account,
                run=job.run,
                kind="lesson",
                legacy_id=candidate.legacy,
                subject=lesson,
                refusal=refusal,
            )
            for candidate, lesson, refusal in taken
        ],
        update_conflicts=True,
        unique_fields=["account", "kind", "legacy_id"],
        update_fields=["run", "subject", "refusal"],
    )
    new = [(candidate, lesson) for candidate, lesson, refusal in taken if lesson is not None and not refusal]
    # Recorded now, and as old as they are: the age counts in ranking.
    execute(
        "UPDATE lesson SET created_at = told.at FROM unnest(%s::uuid[], %s::timestamptz[]) AS told(id, at) "
        "WHERE lesson.id = told.id",
        [[lesson for _, lesson in new], [candidate.at for candidate, _ in new]],
    )
    LessonEmbedding.objects.bulk_create(
        LessonEmbedding(lesson_id=lesson, space=candidate.lies.space, embedding=candidate.lies.vector)
        for candidate, lesson in new
        if candidate.lies is not None and not candidate.lies.space.is_active
    )


def _stored(job: Job, candidate: Candidate, meaning: Meaning | None) -> tuple[UUID | None, str]:
    """What the lesson is here, and why it is no row of its own."""
    if values.old_digest(candidate.text) in job.buried:
        digest = text_gates(candidate.text).digest
        WriteRefusal.objects.create(account_id=job.scope, path=PATH, reason=REJECTED, digest=digest, actor=SYSTEM)
        return None, REJECTED
    written = _write(job, candidate, meaning)
    if written.lesson is None:
        same = Lesson.objects.filter(scoped(job.scope), text_sha256=written.verdict.digest)
        is_there = written.verdict.refusal == DUPLICATE
        return same.values_list("pk", flat=True).first() if is_there else None, written.verdict.refusal
    job.report.flagged.update(written.verdict.flags)
    return written.lesson.pk, ""


def _write(job: Job, candidate: Candidate, meaning: Meaning | None) -> Written:
    gated = job.account.review_policy == ReviewPolicy.GATED.value
    return store(
        NewLesson(
            text=candidate.text,
            origin=Origin.IMPORTED,
            path=PATH,
            actor=SYSTEM,
            state=LessonState.CANDIDATE if gated else LessonState.ACTIVE,
            account_id=job.scope,
            source_interaction=candidate.source,
            source_import=job.run.pk,
            source_ref=candidate.legacy,
            meaning=meaning,
        )
    )


def digests(job: Job) -> frozenset[str]:
    """The old digests of the values that the old store had rejected."""
    return frozenset(
        row["text_sha256"]
        for rows in job.source.batches("lesson_tombstones", 1000)
        for row in rows
        if isinstance(row.get("text_sha256"), str)
    )


def tombstones(job: Job, rows: Sequence[Row]) -> None:
    """Rejected values whose text is gone: their old digest, and their vector in its own space."""
    sources = job.known("interaction", (row.get("source_interaction") for row in rows))
    known = job.known("lesson", (row.get("source_lesson_id") for row in rows))

    def take(row: Row) -> bool:
        digest = _digest(row)
        source = sources.get(values.optional_id(row.get("source_interaction")) or "")
        if source is not None and not source.alive:
            raise Skipped(GONE)
        if tombstone.is_buried(job.scope, digest):
            return False
        lies = placed(job, vector_of(row, "embedding"))
        LessonTombstone.objects.create(
            account_id=job.scope,
            text_sha256=digest,
            embedding=lies.vector if lies else None,
            space=lies.space if lies else None,
            # The text is gone, so nothing is known of what it claimed: what is near enough is refused.
            polarity={},
            anchor_macs={},
            signature_version=SIGNATURE_VERSION,
            mac_key_id=tombstone.mac_key_id(),
            reason=_reason(row),
            source_lesson=if_there(known, row.get("source_lesson_id")) or new_id(),
            source_interaction=source.subject if source else None,
            created_at=values.moment(row.get("created_ts"), job.now),
        )
        return True

    each(job, "lesson_tombstones", rows, take, "text_sha256")


def _digest(row: Row) -> str:
    digest = values.ident(row.get("text_sha256"))
    if len(digest) != DIGEST or set(digest) - set("0123456789abcdef"):
        raise Skipped("bad_value")
    return digest


def _reason(row: Row) -> str:
    reason = values.said(row.get("reason"))
    if reason not in TombstoneReason.values or reason == TombstoneReason.QUARANTINED:
        raise Skipped("bad_value")  # a quarantine's tombstone belongs to a lesson that stands, and follows it
    return reason
