"""Lessons from a file, through the gates, with a record of where each came from."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import EmbeddingUnavailable, Invalid
from memory.models import EmbeddingSpace, ImportRun, Lesson, LessonEmbedding
from memory.models.sql import execute, fetch
from memory.models.vocabulary import Origin, ReviewKind
from memory.rules.claim import ClaimSignature, same_claim
from memory.search.semantic import vector_literal
from memory.search.support import samples
from memory.search.terms import statistics
from memory.services import space as spaces
from memory.services.lesson import NewLesson, flag, store

BATCH = 100  # lessons in one transaction
SYSTEM = "system"


@dataclass(kw_only=True)
class Report:
    """What became of a file's lines."""

    stored: int = 0
    flagged: Counter[str] = field(default_factory=Counter)  # stored, and waiting for review, by reason
    refused: Counter[str] = field(default_factory=Counter)  # by reason
    details: list[dict[str, Any]] = field(default_factory=list)  # line, id, reason; never text
    embedded: int = 0
    note: str = ""  # why nothing was embedded, if so

    def as_json(self) -> dict[str, Any]:
        return {
            "stored": self.stored,
            "flagged": dict(self.flagged),
            "refused": dict(self.refused),
            "embedded": self.embedded,
            "details": self.details,
            **({"note": self.note} if self.note else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a JSONL file."""

    number: int  # from 1
    text: str
    ref: str  # the file's own id of the lesson, or ''


def read_lines(path: Path) -> Iterator[Line]:
    """The lessons of a JSONL file. Raises Invalid naming the line that is not an object with a text."""
    with path.open(encoding="utf-8-sig") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                data = json.loads(raw)
            except (json.JSONDecodeError, RecursionError):
                raise Invalid.field(f"line {number}", "is not JSON.") from None
            text = data.get("text") if isinstance(data, dict) else None
            if not isinstance(text, str):
                raise Invalid.field(f"line {number}", 'needs a "text" that is a string.')
            yield Line(number=number, text=text, ref=str(data.get("id", ""))[:200])


def start_run(path: Path) -> ImportRun:
    """The source record of everything that comes from this file; the same file again is the same run."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    run = ImportRun.objects.filter(sha256=sha256).first()
    return run or ImportRun.objects.create(name=path.name[:200], sha256=sha256, actor=SYSTEM)


def import_lines(
    lines: Iterator[Line],
    run: ImportRun,
    *,
    account_id: Any = None,
    strict: bool = False,
    origin: Origin = Origin.IMPORTED,
) -> Iterator[tuple[int, Report]]:
    """Stores lines batch by batch; yields how many lines are done and the report so far. Interrupted, it resumes."""
    report = Report()
    active = EmbeddingSpace.objects.filter(is_active=True).first()
    done = 0
    while batch := list(islice(lines, BATCH)):
        with transaction.atomic():
            fresh = [lesson for line in batch if (lesson := _one(line, run, account_id, strict, origin, report))]
        _embed(fresh, active, report)
        done += len(batch)
        yield done, report
    run.figures = {key: value for key, value in report.as_json().items() if key != "details"}
    run.save(update_fields=["figures"])
    refresh_statistics()


def _one(
    line: Line, run: ImportRun, account_id: UUID | None, strict: bool, origin: Origin, report: Report
) -> Lesson | None:
    written = store(
        NewLesson(
            text=line.text,
            origin=origin,
            path="import",
            actor=SYSTEM,
            account_id=account_id,
            source_import=run.pk,
            source_ref=line.ref,
        ),
        strict=strict,
    )
    verdict = written.verdict
    if written.lesson is None:
        report.refused[verdict.refusal] += 1
        report.details.append({"line": line.number, "id": line.ref, "refused": verdict.refusal, "why": verdict.details})
        return None
    report.stored += 1
    for name in verdict.flags:
        report.flagged[name] += 1
        report.details.append({"line": line.number, "id": line.ref, "flagged": name, "why": verdict.details})
    return written.lesson


def _embed(lessons: list[Lesson], space: EmbeddingSpace | None, report: Report) -> None:
    """Embeds a batch and flags near duplicates; where embeddings are unavailable the background does it later."""
    if space is None or report.note or not lessons:
        report.note = report.note or ("" if space else "No embedding space is open; lessons wait for one.")
        return
    try:
        report.embedded += spaces.embed(lessons, space)
    except EmbeddingUnavailable as refusal:
        report.note = refusal.detail
        return
    for lesson in lessons:
        if near_duplicate(lesson, space):
            flag(lesson, ReviewKind.NEAR_DUPLICATE)
            report.flagged["near_duplicate"] += 1


def near_duplicate(lesson: Lesson, space: EmbeddingSpace) -> bool:
    """Whether another live lesson is as similar as a duplicate and makes the same claim."""
    own = LessonEmbedding.objects.filter(lesson=lesson, space=space).first()
    if own is None:
        return False
    vector = vector_literal(own.embedding)
    rows = fetch(
        f"SELECT l.polarity, l.anchors, 1 - e.distance FROM (SELECT lesson_id, "
        f"embedding::halfvec({space.dimension}) <=> %s::halfvec AS distance FROM lesson_embedding "
        f"WHERE space_id = '{space.pk}' AND state = 'active' AND account_id IS NOT DISTINCT FROM %s "
        f"ORDER BY embedding::halfvec({space.dimension}) <=> %s::halfvec LIMIT 5) e "
        "JOIN lesson l ON l.id = e.lesson_id WHERE e.lesson_id <> %s",
        [vector, lesson.account_id, vector, lesson.pk],
    )
    mine = ClaimSignature.from_json({"polarity": lesson.polarity, "anchors": lesson.anchors})
    for polarity, anchors, cosine in rows:
        theirs = ClaimSignature.from_json({"polarity": _json(polarity), "anchors": _json(anchors)})
        if cosine >= space.duplicate_similarity and same_claim(mine, theirs).same:
            return True
    return False


def _json(value: Any) -> Any:
    """A jsonb column read by a plain cursor, which Django leaves as text."""
    return json.loads(value) if isinstance(value, str) else value


def refresh_statistics() -> None:
    """Lets PostgreSQL count the words anew, so that the lexical search knows which are rare."""
    execute("ANALYZE lesson, lesson_embedding")
    statistics.forget()
    samples.forget()
