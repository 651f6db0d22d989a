"""The transaction around an erasure, its record, and the ledger outside the database."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import structlog
from django.db import OperationalError, transaction

from memory import conf
from memory.errors import Forbidden, Invalid, NotFound
from memory.models import Account, ErasureRecord, Fact, Interaction, Lesson, Project, PruneArchive
from memory.models.scope import scoped
from memory.models.sql import execute, fetch
from memory.services.erasure import account, demo, interaction, lesson
from memory.services.erasure.fact import erase_fact
from memory.services.scoping import lesson_account, lock_all

log = structlog.get_logger(__name__)
Counts = Counter[str]  # rows gone, by table
LOST_RACES = ("40P01", "40001")  # SQLSTATE: deadlock_detected, serialization_failure
ATTEMPTS = 5
# Seconds at most before the second attempt, twice as long before each later one. A part of it at random, so that two
# that hindered each other do not meet again.
FIRST_WAIT = 0.1


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What went, or would go."""

    kind: str
    subject: UUID
    counts: dict[str, int]  # rows by table
    dry_run: bool


# What can be erased, by the function that does it.
KINDS: dict[str, Callable[[UUID, Counts], None]] = {
    "interaction": interaction.erase_interaction,
    "lesson": lesson.erase_lesson,
    "fact": erase_fact,
    "project": account.erase_project,
    "account": account.erase_account,
    "demo": demo.erase_demo,  # by the id of its account
}


def erase(kind: str, subject: UUID, *, account_id: UUID | None, actor: str, dry_run: bool = False) -> Erased:
    """Erases one record with all that came from it, in one transaction.

    `account_id` confines the caller; None is an operator, who may erase anything. Raises Invalid for an unknown kind,
    NotFound for what does not exist in the account, and Forbidden for a shared lesson that was not learned from the
    account's own work. An attempt that loses a race has changed nothing, and is made
    again a few times; OperationalError if the last one is lost too.
    """
    if kind not in KINDS:
        raise Invalid.field("kind", f"choose one of {', '.join(KINDS)}.")
    for attempt in range(ATTEMPTS - 1):
        try:
            return _attempt(kind, subject, account_id, actor, dry_run)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) not in LOST_RACES:
                raise
            log.warning("erasure_attempted_again", kind=kind, subject=str(subject), reason=str(error))
            time.sleep(random.SystemRandom().uniform(0, FIRST_WAIT * 2**attempt))
    return _attempt(kind, subject, account_id, actor, dry_run)


def _attempt(kind: str, subject: UUID, account_id: UUID | None, actor: str, dry_run: bool) -> Erased:
    """The erasure, its record, and once it is committed its line in the ledger; or an error, and none of them."""
    counts: Counts = Counter()
    with transaction.atomic():
        lock_all()  # no credit is under way, and none begins, until this has committed
        _require(kind, subject, account_id)
        # The append-only triggers let through the transaction that this names, and no other.
        fetch("SELECT set_config('sonder.erasure', pg_current_xact_id()::text, true)")
        KINDS[kind](subject, counts)
        fetch("SELECT set_config('sonder.erasure', '', true)")
        # What still refers to what is gone is found here and not at the commit, where nobody could try again.
        execute("SET CONSTRAINTS ALL IMMEDIATE")
        execute("SET CONSTRAINTS ALL DEFERRED")
        found = {table: n for table, n in sorted(counts.items()) if n}
        if dry_run:
            transaction.set_rollback(True)
        else:
            record = ErasureRecord.objects.create(kind=kind, subject=subject, counts=found, actor=actor)
            transaction.on_commit(lambda: _after(record))
    return Erased(kind=kind, subject=subject, counts=found, dry_run=dry_run)


def _require(kind: str, subject: UUID, account_id: UUID | None) -> None:
    if not exists(kind, subject, account_id):
        raise NotFound(f"There is no such {kind} in your scope.")
    if kind == "lesson" and account_id is not None and not _may_erase(subject, account_id):
        raise Forbidden(
            "Lessons are shared by all accounts here, and this one was not learned from your account's work. "
            f"An operator can erase it: manage.py erase lesson {subject} --apply"
        )


def exists(kind: str, subject: UUID, account_id: UUID | None = None) -> bool:
    """Whether there is something to erase, in the account or, without one, anywhere."""
    if kind in ("account", "demo"):
        return account_id in (None, subject) and Account.objects.filter(pk=subject).exists()
    if kind == "lesson":
        return _lesson_exists(subject, account_id)
    own = {"pk": subject} if account_id is None else {"pk": subject, "account_id": account_id}
    return {
        "interaction": Interaction.objects.filter(**own),
        "fact": Fact.objects.filter(**own),
        "project": Project.objects.filter(**own),
    }[kind].exists()


def _lesson_exists(subject: UUID, account_id: UUID | None) -> bool:
    """Also where it was merged into another and can come back."""
    found = Lesson.objects.filter(pk=subject)
    archived = PruneArchive.objects.filter(lesson=subject, kind="lesson")
    if account_id is not None:
        scope = lesson_account(account_id)
        found = found.filter(scoped(scope))
        archived = archived.filter(plan__states__account=None if scope is None else str(scope))
    return found.exists() or archived.exists()


def _may_erase(lesson: UUID, account_id: UUID) -> bool:
    """Whether a lesson is the account's own, or was learned from its work; also one that was merged into another."""
    if lesson_account(account_id) is not None:
        return True
    sources = [
        *Lesson.objects.filter(pk=lesson).values_list("source_interaction", flat=True),
        *PruneArchive.objects.filter(lesson=lesson, kind="lesson").values_list(
            "payload__row__source_interaction", flat=True
        ),
    ]
    return Interaction.objects.filter(pk__in=filter(None, sources), account_id=account_id).exists()


def _after(record: ErasureRecord) -> None:
    """Once it is committed: the ledger outside the database learns of it."""
    try:
        _append([record])
    except OSError as error:
        # The row is gone and its record stands; the daily job writes the line.
        log.warning("erasure_ledger_unwritable", reason=str(error), path=str(ledger_path()))


def missing_from_ledger() -> list[ErasureRecord]:
    """Erasures that the database records and the ledger does not know, oldest first. Raises OSError."""
    known = {(kind, subject) for kind, subject, _ in read_ledger()}
    records = ErasureRecord.objects.order_by("id")
    return [record for record in records if (record.kind, record.subject) not in known]


def sync_ledger() -> int:
    """Appends what the ledger lacks, after a crash or a full disk; returns how many lines. Raises OSError."""
    waiting = missing_from_ledger()
    if waiting:
        _append(waiting)
    return len(waiting)


def _append(records: Sequence[ErasureRecord]) -> None:
    path = ledger_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"kind": record.kind, "subject": str(record.subject), "at": record.created_at.isoformat()}) + "\n"
        for record in records
    ]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(lines))
        file.flush()
        os.fsync(file.fileno())


def ledger_path() -> Path:
    """The file that says what was erased, content-free; a backup that is restored is held against it."""
    return Path(conf.current().var) / "erasures.ndjson"


def read_ledger(path: Path | None = None) -> Iterator[tuple[str, UUID, datetime]]:
    """Kind, subject and time of every erasure that a ledger knows, the installation's own unless `path` names another.

    Oldest first. Raises OSError, ValueError or KeyError for a file that cannot be read as one.
    """
    try:
        lines = (path or ledger_path()).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        entry = json.loads(line)
        yield entry["kind"], UUID(entry["subject"]), datetime.fromisoformat(entry["at"])
