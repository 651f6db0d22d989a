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

from memory.embedding.active import provider, usable_space
from memory.embedding.base import embed_each, encodable
from memory.errors import EmbeddingUnavailable, Invalid
from memory.models import ImportRun, Lesson
from memory.models.scope import scoped
from memory.models.sql import execute
from memory.models.vocabulary import Origin
from memory.rules.text import clean
from memory.search.support import samples
from memory.search.terms import statistics
from memory.services.gates import Meaning, text_gates
from memory.services.lesson import NewLesson, store

BATCH = 32  # lessons in one transaction, which holds up the credits of the scope
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
            except (ValueError, RecursionError):  # also a number of more digits than Python reads
                raise Invalid.field(f"line {number}", "is not JSON.") from None
            text = data.get("text") if isinstance(data, dict) else None
            if not isinstance(text, str):
                raise Invalid.field(f"line {number}", 'needs a "text" that is a string.')
            yield Line(number=number, text=text, ref=clean(str(data.get("id", "")))[:200])


def start_run(path: Path) -> ImportRun:
    """The source record of everything that comes from this file; the same file again is the same run."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    run = ImportRun.objects.filter(sha256=sha256).first()
    return run or ImportRun.objects.create(name=encodable(path.name)[:200], sha256=sha256, actor=SYSTEM)


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
    done = 0
    while batch := list(islice(lines, BATCH)):
        meanings = _embed(batch, account_id, report)  # outside any transaction: a model may be slow
        with transaction.atomic():
            for line in batch:
                _one(line, run, account_id, strict, origin, report, meanings.get(line.number))
        done += len(batch)
        yield done, report
    run.figures = {key: value for key, value in report.as_json().items() if key != "details"}
    run.save(update_fields=["figures"])
    refresh_statistics()


def _one(
    line: Line,
    run: ImportRun,
    account_id: UUID | None,
    strict: bool,
    origin: Origin,
    report: Report,
    meaning: Meaning | None,
) -> None:
    written = store(
        NewLesson(
            text=line.text,
            origin=origin,
            path="import",
            actor=SYSTEM,
            account_id=account_id,
            source_import=run.pk,
            source_ref=line.ref,
            meaning=meaning,
        ),
        strict=strict,
    )
    verdict = written.verdict
    if written.lesson is None:
        report.refused[verdict.refusal] += 1
        report.details.append({"line": line.number, "id": line.ref, "refused": verdict.refusal, "why": verdict.details})
        return
    report.stored += 1
    report.embedded += meaning is not None
    for name in verdict.flags:
        report.flagged[name] += 1
        report.details.append({"line": line.number, "id": line.ref, "flagged": name, "why": verdict.details})


def _embed(batch: list[Line], account_id: UUID | None, report: Report) -> dict[int, Meaning]:
    """Where each new line lies, by its number; where no model is there the background embeds what was stored, later.

    What a look at the text refuses, or the store has already, does not reach the model. What the model refuses is
    stored without a vector.
    """
    if report.note:
        return {}
    texts = {line.number: clean(line.text).strip() for line in batch}
    digests = {n: verdict.digest for n, text in texts.items() if not (verdict := text_gates(text)).refusal}
    stored = Lesson.objects.filter(scoped(account_id), text_sha256__in=digests.values())
    known = set(stored.values_list("text_sha256", flat=True))
    wanted = [n for n, digest in digests.items() if digest not in known]
    if not wanted:
        return {}
    try:
        space = usable_space()
        vectors = embed_each(provider(), [texts[n] for n in wanted])
    except EmbeddingUnavailable as refusal:
        report.note = refusal.detail
        return {}
    found = zip(wanted, vectors, strict=True)
    return {n: Meaning(vector=vector, space=space) for n, vector in found if vector is not None}


def refresh_statistics() -> None:
    """Lets PostgreSQL count the words anew, so that the lexical search knows which are rare."""
    execute("ANALYZE lesson, lesson_embedding")
    statistics.forget()
    samples.forget()
