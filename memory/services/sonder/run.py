"""One import, table by table: what others refer to comes first, and outcomes only when all exposures are there.

Every batch is a transaction with its own notes of what is here now, so that a run that was killed is simply run again.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils import timezone

from memory.errors import Invalid
from memory.models import Account, ApiKey, ImportRun
from memory.models.vocabulary import OutcomeSource
from memory.services import credit
from memory.services.importing import BATCH, SYSTEM, refresh_statistics
from memory.services.keys import create_key
from memory.services.scoping import lesson_account
from memory.services.sonder import exposures, judgements, lessons, preferences, quarantine, rest, work
from memory.services.sonder.job import Job
from memory.services.sonder.report import Report, Tally
from memory.services.sonder.snapshot import Row, Snapshot

KEY: Final = "the Sonder that moved in"  # name of the key that stands for the old runtime
CREDITED: Final = 200  # interactions credited between two signs of progress


@dataclass(frozen=True, kw_only=True)
class Table:
    """How a table of the file is taken over."""

    name: str
    take: Callable[[Job, Sequence[Row]], None]
    size: int = 500  # rows in one transaction
    own_transactions: bool = False  # a model is asked between its reads and its writes


TABLES: Final = (
    Table(name="interactions", take=work.interactions),
    Table(name="sessions", take=work.sessions),
    Table(name="session_project_summaries", take=work.summaries),
    Table(name="lessons", take=lessons.lessons, size=BATCH, own_transactions=True),
    Table(name="lesson_tombstones", take=lessons.tombstones),
    Table(name="lesson_usage", take=exposures.usage),
    Table(name="outcomes", take=judgements.outcomes),
    Table(name="lesson_distillations", take=judgements.distillations),
    Table(name="preferences", take=preferences.preferences),
    Table(name="refinement_history", take=preferences.refinements),
    Table(name="facts", take=rest.facts),
    Table(name="tasks", take=rest.tasks),
    Table(name="task_events", take=rest.task_events),
    Table(name="task_deps", take=rest.dependencies),
)
#: What has no place here, and why.
ELSEWHERE: Final = {
    "lessons_fts": "made_anew",  # the index of words
    "session_turn_claims": "no_longer_live",
    "memory_migrations": "of_the_old_program",
}


def import_store(source: Snapshot, account: Account, *, dry_run: bool = False) -> Iterator[tuple[str, int, Report]]:
    """Takes a whole file over; yields the table, how many of its rows are done, and the report so far.

    A dry run does everything but ask a model and credit, and takes it back. Raises Invalid for a file that turns out to
    be damaged.
    """
    around: AbstractContextManager[object] = transaction.atomic() if dry_run else nullcontext()
    try:
        with around:
            job = _begin(source, account, embed=not dry_run)
            yield from _tables(job)
            job.report.quarantined_there = quarantine.held_back(source, job.now)
            if dry_run:
                transaction.set_rollback(True)
                return
            yield from _credited(job)
    except sqlite3.DatabaseError as error:
        raise Invalid(f"{source.name} cannot be read to its end: {error}. What was taken over stays.") from None
    figures = {key: value for key, value in job.report.as_json().items() if key != "details"}
    ImportRun.objects.filter(pk=job.run.pk).update(figures=figures)
    refresh_statistics()


def _begin(source: Snapshot, account: Account, *, embed: bool) -> Job:
    run = ImportRun.objects.filter(sha256=source.sha256).first() or ImportRun.objects.create(
        name=source.name.encode("utf-8", "replace").decode()[:200], sha256=source.sha256, actor=SYSTEM
    )
    job = Job(
        source=source,
        account=account,
        scope=lesson_account(account.pk),
        key=_key(account),
        run=run,
        now=timezone.now(),
        embed=embed,
    )
    job.buried = lessons.digests(job)
    for name in source.tables:
        job.report.tables[name] = Tally(rows=source.count(name))
    return job


def _key(account: Account) -> ApiKey:
    """The credential that old work is filed under. Its secret is told to nobody, and it is revoked at once."""
    key = ApiKey.objects.filter(account=account, name=KEY).first()
    if key is None:
        key = create_key(account, name=KEY, source=OutcomeSource.UNKNOWN.value, scopes=["read"]).key
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
    return key


def _tables(job: Job) -> Iterator[tuple[str, int, Report]]:
    for table in TABLES:
        done = 0
        for rows in job.source.batches(table.name, table.size):
            with nullcontext() if table.own_transactions else transaction.atomic():
                table.take(job, rows)
            done += len(rows)
            yield table.name, done, job.report
    for rows in job.source.batches("tasks", 500):
        with transaction.atomic():
            rest.parents(job, rows)
    taken = {table.name for table in TABLES}
    for name, tally in job.report.tables.items():
        if name not in taken and tally.rows:
            tally.skipped[ELSEWHERE.get(name, "no_place")] += tally.rows


def _credited(job: Job) -> Iterator[tuple[str, int, Report]]:
    """Credits everything that waits: the sums and the standings follow. Each judge weighs what they weigh anywhere."""
    while n := credit.sweep(CREDITED):
        job.report.credited += n
        yield "credit", job.report.credited, job.report
