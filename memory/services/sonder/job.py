"""What one import knows: whose rows they become, what they are called here, and what came of each."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db import models

from memory.models import (
    Account,
    ApiKey,
    Fact,
    ImportedRow,
    ImportRun,
    Interaction,
    Lesson,
    Outcome,
    Preference,
    Project,
    RefinementHistory,
    Session,
    SessionProjectSummary,
    Task,
    TaskEvent,
)
from memory.models.base import new_id, told_at
from memory.rules.text import clean
from memory.services.sonder.report import Report
from memory.services.sonder.snapshot import Row, Snapshot
from memory.services.sonder.values import LONGEST_ID, Skipped, optional_id, project_slug

GONE: Final = "gone_here"  # was brought in before, and was erased or merged away since
ORPHAN: Final = "orphan"  # names a row that the file does not have, or that was skipped
#: What a row of each kind is here.
MODELS: Final[Mapping[str, type[models.Model]]] = {
    "interaction": Interaction,
    "outcome": Outcome,
    "lesson": Lesson,
    "session": Session,
    "summary": SessionProjectSummary,
    "preference": Preference,
    "refinement": RefinementHistory,
    "fact": Fact,
    "task": Task,
    "task_event": TaskEvent,
}


@dataclass(frozen=True, kw_only=True)
class Known:
    """What was brought in before, or in this run."""

    subject: UUID | None  # what it is here; None where it was refused
    refusal: str  # why, or '' for a row of its own
    alive: bool  # the subject is still there


@dataclass(kw_only=True)
class Job:
    """One run over one file."""

    source: Snapshot
    account: Account
    scope: UUID | None  # account of the lessons; None where they are shared
    key: ApiKey  # stands for the old runtime, which had none; it opens nothing
    run: ImportRun
    now: datetime
    embed: bool = True  # whether a model may be asked
    report: Report = field(default_factory=Report)
    buried: frozenset[str] = frozenset()  # digests, the old way, of values that the old store had rejected
    projects: dict[str, Project] = field(default_factory=dict)  # by the old name
    sessions: dict[str, Session] = field(default_factory=dict)  # by the agent's own id, which is the old one

    def known(self, kind: str, legacy: Iterable[Any]) -> dict[str, Known]:
        """Those of these old ids that were met before, in two reads."""
        rows = ImportedRow.objects.filter(
            account=self.account, kind=kind, legacy_id__in={i for i in map(optional_id, legacy) if i}
        )
        found = list(rows.values_list("legacy_id", "subject", "refusal"))
        there = MODELS[kind]._default_manager.filter(pk__in=[subject for _, subject, _ in found if subject])
        alive = set(there.values_list("pk", flat=True))
        return {i: Known(subject=s, refusal=refusal, alive=s in alive) for i, s, refusal in found}

    def remember(self, kind: str, rows: Iterable[tuple[str, UUID]]) -> None:
        """Notes what rows of the file are here."""
        ImportedRow.objects.bulk_create(
            ImportedRow(account=self.account, run=self.run, kind=kind, legacy_id=legacy, subject=subject)
            for legacy, subject in rows
        )

    def project(self, name: Any) -> Project | None:
        """The project of a name, made on first use; None where a row has none."""
        if not isinstance(name, str) or not name.strip():
            return None
        if name not in self.projects:
            self.projects[name], _ = Project.objects.get_or_create(
                account=self.account,
                slug=project_slug(name),
                defaults={"name": clean(name)[:200] or project_slug(name)},
            )
        return self.projects[name]

    def session(self, name: Any) -> Session | None:
        """The session of the agent's own id, made on first use; None where a row has none."""
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID or clean(name) != name:
            return None
        if name not in self.sessions:
            self.sessions[name], _ = Session.objects.get_or_create(account=self.account, external_id=name)
        return self.sessions[name]


def following(known: Mapping[str, Known], legacy: str | None) -> UUID:
    """What a row that must exist is here. Raises Skipped with why it is not."""
    found = known.get(legacy) if legacy else None
    if found is None:
        raise Skipped(ORPHAN)
    if found.subject is None:
        raise Skipped("refused_above")
    if not found.alive:
        raise Skipped(GONE)
    return found.subject


def if_there(known: Mapping[str, Known], legacy: Any) -> UUID | None:
    """What a row that may be missing is here."""
    found = known.get(legacy) if isinstance(legacy, str) else None
    return found.subject if found and found.alive else None


def before(known: Mapping[str, Known], legacy: str, seen: Collection[str]) -> bool:
    """Whether a row was brought in before. Raises Skipped if it is gone since, or a second time in the file."""
    if legacy in seen:
        raise Skipped("repeated")
    found = known.get(legacy)
    if found is not None and not found.alive:
        raise Skipped(GONE)
    return found is not None


def ordered_id(at: datetime, rowid: int) -> UUID:
    """A UUIDv7 of a time; among those of the same millisecond, in the order of the file's rows."""
    with told_at(at):
        made = new_id().int
    # The 12 bits after the version are free for a counter (RFC 9562, 6.2, method 1).
    return UUID(int=made & ~(0xFFF << 64) | (rowid & 0xFFF) << 64)


def each(job: Job, table: str, rows: Sequence[Row], take: Callable[[Row], bool], name: str = "id") -> None:
    """Takes rows one by one and counts what became of each; `take` says whether it is new here."""
    tally = job.report.tables[table]
    for row in rows:
        try:
            if take(row):
                tally.imported += 1
            else:
                tally.already += 1
        except Skipped as why:
            job.report.skip(table, shown(row.get(name)), why.reason)


def shown(value: Any) -> str | None:
    """An id as a report may show it."""
    return value[:80] if isinstance(value, str) else None


def chunked(rows: Sequence[Row], size: int) -> Iterable[list[Row]]:
    """The rows, a few at a time."""
    rest = iter(rows)
    while chunk := list(islice(rest, size)):
        yield chunk
