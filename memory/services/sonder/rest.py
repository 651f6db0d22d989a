"""Facts, and the to-do items of agents."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from memory.models import Fact, Task, TaskDependency, TaskEvent
from memory.rules.privacy import find_private
from memory.services.importing import SYSTEM
from memory.services.sonder import values
from memory.services.sonder.job import Job, before, each, following, ordered_id
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import Skipped


def facts(job: Job, rows: Sequence[Row]) -> None:
    """Facts about projects, believed since they were recorded. Their vectors do not say which model made them."""
    known = job.known("fact", (row.get("id") for row in rows))
    new: dict[str, Fact] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        at, text = values.moment(row.get("ts"), job.now), values.needed(row.get("text"))
        if find_private(text):
            raise Skipped("private")
        project = job.project(row.get("project"))
        if project is None:
            raise Skipped("no_project")
        if row.get("embedding") is not None:
            job.report.vectors["no_model"] += 1
        new[legacy] = Fact(
            id=ordered_id(at, row["rowid"]), recorded_at=at, account=job.account, project=project, text=text
        )
        return True

    each(job, "facts", rows, take)
    Fact.objects.bulk_create(new.values())
    job.remember("fact", ((legacy, fact.pk) for legacy, fact in new.items()))


def tasks(job: Job, rows: Sequence[Row]) -> None:
    """To-do items. One of another account of the old store stays out: it was not everybody's there."""
    known = job.known("task", (row.get("id") for row in rows))
    new: dict[str, Task] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        if row.get("account_scope") not in (None, job.account.slug):
            raise Skipped("other_account")
        at, title = values.moment(row.get("created_ts"), job.now), values.needed(row.get("title"))
        new[legacy] = Task(
            id=ordered_id(at, row["rowid"]),
            created_at=at,
            account=job.account,
            project=job.project(row.get("project")),
            title=title[:300],
            detail=values.said(row.get("detail"))
            if len(title) <= 300
            else f"{title}\n{values.said(row.get('detail'))}",
            status=_status(row.get("status")),
            priority=values.whole(row.get("priority"), least=-values.LARGEST_INTEGER),
            owner=values.said(row.get("owner"), 200),
        )
        return True

    each(job, "tasks", rows, take)
    Task.objects.bulk_create(new.values())
    job.remember("task", ((legacy, task.pk) for legacy, task in new.items()))


def _status(value: Any) -> str:
    word = values.said(value).strip().casefold().replace("-", "_")
    if word not in values.STATUSES:
        raise Skipped("unknown_status")
    return values.STATUSES[word]


def parents(job: Job, rows: Sequence[Row]) -> None:
    """Which task is part of which, once all are there. A parent that is not here is left out and noted."""
    known = job.known("task", (row.get(name) for row in rows for name in ("id", "parent_id")))
    for row in rows:
        parent, child = (known.get(values.optional_id(row.get(name)) or "") for name in ("parent_id", "id"))
        if not row.get("parent_id") or child is None or not child.alive:
            continue
        if parent is None or not parent.alive or parent.subject == child.subject:
            job.report.notes["tasks without the parent that they name"] += 1
            continue
        Task.objects.filter(pk__in=[child.subject], parent__isnull=True).update(parent=parent.subject)


def task_events(job: Job, rows: Sequence[Row]) -> None:
    """What happened to tasks; who did it, the old store did not note."""
    known = job.known("task_event", (row.get("id") for row in rows))
    items = job.known("task", (row.get("task_id") for row in rows))
    new: dict[str, TaskEvent] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        at = values.moment(row.get("ts"), job.now)
        new[legacy] = TaskEvent(
            id=ordered_id(at, row["rowid"]),
            created_at=at,
            task_id=following(items, values.ident(row.get("task_id"))),
            event=values.needed(row.get("event"))[:40],
            note=values.said(row.get("note")),
            actor=SYSTEM,
        )
        return True

    each(job, "task_events", rows, take)
    TaskEvent.objects.bulk_create(new.values())
    job.remember("task_event", ((legacy, event.pk) for legacy, event in new.items()))


def dependencies(job: Job, rows: Sequence[Row]) -> None:
    """What must be done first."""
    items = job.known("task", (row.get(name) for row in rows for name in ("task_id", "depends_on")))

    def take(row: Row) -> bool:
        task, first = (following(items, values.ident(row.get(name))) for name in ("task_id", "depends_on"))
        at = values.moment(row.get("created_ts"), job.now)
        try:
            with transaction.atomic():
                _, made = TaskDependency.objects.get_or_create(
                    task_id=task, depends_on_id=first, defaults={"created_at": at}
                )
        except IntegrityError:
            raise Skipped("cycle") from None  # also a task that waits for itself
        return made

    each(job, "task_deps", rows, take, "task_id")
