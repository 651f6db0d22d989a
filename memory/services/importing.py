"""Lessons from a file, through the gates, with a record of where each came from."""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
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
Name = TypeVar("Name", bound=Hashable)


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
    """One lesson of a file."""

    number: int  # of the line on which it begins, from 1
    text: str
    ref: str  # the file's own id of the lesson, or ''


def read_lines(path: Path) -> Iterator[Line]:
    """The lessons of a file: CSV with a column `text` where its name ends in .csv, else JSON lines.

    Raises Invalid naming the line that has no text.
    """
    return _read_csv(path) if path.suffix.casefold() == ".csv" else _read_jsonl(path)


def _read_jsonl(path: Path) -> Iterator[Line]:
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
            yield Line(number=number, text=text, ref=_ref(data.get("id", "")))


def _read_csv(path: Path) -> Iterator[Line]:
    """RFC 4180: a header, then a row a lesson; a text in quotes may go over several lines."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        begun = 1
        try:
            names = next(rows, [])
            if names.count("text") != 1:
                raise Invalid.field("line 1", 'needs one column that is called "text".')
            begun = rows.line_num + 1
            for row in rows:
                if row:
                    yield _csv_line(begun, dict(zip(names, row, strict=True)))
                begun = rows.line_num + 1
        except csv.Error as error:
            raise Invalid.field(f"line {begun}", f"is not CSV: {error}.") from None
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            raise Invalid.field(f"line {begun}", "has not as many columns as the first line.") from None


def _csv_line(number: int, row: dict[str, str]) -> Line:
    return Line(number=number, text=row["text"], ref=_ref(row.get("id", "")))


def _ref(value: object) -> str:
    return clean(str(value))[:200]


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
    """Where each new line lies, by its number."""
    if report.note:
        return {}
    meanings, report.note = embed_new({line.number: line.text for line in batch}, account_id)
    return meanings


def embed_new(texts: Mapping[Name, str], account_id: UUID | None) -> tuple[dict[Name, Meaning], str]:
    """Where texts lie that may become lessons, by their names; and why none was embedded, if so.

    Where no model is there the background embeds what was stored, later. What a look at the text refuses, or the store
    has already, does not reach the model. What the model refuses is stored without a vector.
    """
    clear = {name: clean(text).strip() for name, text in texts.items()}
    digests = {name: verdict.digest for name, text in clear.items() if not (verdict := text_gates(text)).refusal}
    stored = Lesson.objects.filter(scoped(account_id), text_sha256__in=digests.values())
    known = set(stored.values_list("text_sha256", flat=True))
    wanted = [name for name, digest in digests.items() if digest not in known]
    if not wanted:
        return {}, ""
    try:
        space = usable_space()
        vectors = embed_each(provider(), [clear[name] for name in wanted])
    except EmbeddingUnavailable as refusal:
        return {}, refusal.detail
    found = zip(wanted, vectors, strict=True)
    return {name: Meaning(vector=vector, space=space) for name, vector in found if vector is not None}, ""


def refresh_statistics() -> None:
    """Lets PostgreSQL count the words anew, so that the lexical search knows which are rare."""
    execute("ANALYZE lesson, lesson_embedding")
    statistics.forget()
    samples.forget()
