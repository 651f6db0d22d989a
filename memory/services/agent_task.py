"""Tasks: the to-do items of agents, what must come first, and a journal of every change.

Writes to the tasks of one account take turns, so that what is checked still holds when it is written: no two
dependencies close a cycle together, and no task starts while something that it waits for is taken up again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Project, Task, TaskDependency, TaskEvent
from memory.models.sql import fetch
from memory.models.vocabulary import TaskStatus

#: Statuses that a task cannot take while something that it waits for is not done.
STARTED: Final = (TaskStatus.IN_PROGRESS.value, TaskStatus.DONE.value)
FIRST, LAST, MIDDLE = 0, 9, 5  # priorities: 0 comes first
MAX_DEPENDENCIES = 100  # of one task; bounds what a list of tasks carries
MAX_NAMED = 20  # tasks that one refusal names


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """Something to do."""

    title: str
    detail: str = ""
    status: str = TaskStatus.PENDING.value
    priority: int = MIDDLE  # 0 to 9, 0 first
    project: str | None = None  # slug; made on first use
    owner: str = ""  # who does it, in the agents' own words
    parent: UUID | None = None  # the task that this is a part of


def tasks_of(account_id: UUID) -> QuerySet[Task]:
    """The account's tasks with what an answer shows of them, in two queries."""
    return Task.objects.filter(account_id=account_id).select_related("project").prefetch_related("dependencies")


def find(account_id: UUID, task_id: UUID, field: str | None = None) -> Task:
    """The account's task. Raises NotFound, naming the field of the request that it was named in."""
    task = tasks_of(account_id).filter(pk=task_id).first()
    if task is None:
        sentence = "There is no such task in your account."
        raise NotFound(sentence, {field: [sentence]} if field else None)
    return task


@transaction.atomic
def create(account_id: UUID, new: NewTask, actor: str) -> Task:
    """A new task. Raises NotFound naming `parent`."""
    _take_turns(account_id)
    task = Task(account_id=account_id)
    _write(task, asdict(new))
    task.save(force_insert=True)
    _journal(task, "created", "", actor)
    return find(account_id, task.pk)


@transaction.atomic
def change(account_id: UUID, task_id: UUID, changes: Mapping[str, Any], actor: str) -> Task:
    """Changes the named fields and no others; each one that differs is an event.

    Raises NotFound, or Conflict if the task would start before what it waits for is done, or be a part of itself.
    """
    _take_turns(account_id)
    task = find(account_id, task_id)
    before = _state(task)
    _write(task, changes)
    moved = {name: (before[name], value) for name, value in _state(task).items() if value != before[name]}
    if "parent" in moved:
        _refuse_own_part(task)
    if "status" in moved and task.status in STARTED:
        _refuse_early(task)
    for name, (old, new) in moved.items():
        _journal(task, name, f"{_shown(old)} -> {_shown(new)}", actor)
    task.save(update_fields=list(moved))
    return find(account_id, task_id)


@transaction.atomic
def note(account_id: UUID, task_id: UUID, text: str, actor: str) -> TaskEvent:
    """Adds a note to the task's journal. Raises NotFound."""
    return _journal(find(account_id, task_id), "note", text, actor)


@transaction.atomic
def depend(account_id: UUID, task_id: UUID, on: UUID, actor: str) -> tuple[Task, bool]:
    """Makes a task wait for another; the flag says whether it did not before.

    Raises NotFound, Invalid if it waits for too many, or Conflict if the dependency closes a cycle, or the task has
    started and the other is not done.
    """
    _take_turns(account_id)
    task, first = find(account_id, task_id), find(account_id, on, "depends_on")
    known = {dependency.depends_on_id for dependency in task.dependencies.all()}
    if on in known:
        return task, False
    if len(known) >= MAX_DEPENDENCIES:
        raise Invalid.field("depends_on", f"a task waits for at most {MAX_DEPENDENCIES} others.")
    if circle := _path(start=on, end=task.pk):
        _refuse_circle("depends_on", "would wait for itself", [task.pk, *circle])
    if task.status in STARTED and first.status != TaskStatus.DONE:
        raise Conflict(
            f"The task is {task.status} already, and {_named(first)}. Set it to blocked or pending first.",
            {"depends_on": [f"{_named(first)}."]},
        )
    TaskDependency.objects.create(task=task, depends_on=first)
    _journal(task, "dependency_added", str(on), actor)  # no title: the other's text goes where it is erased
    return find(account_id, task_id), True


@transaction.atomic
def release(account_id: UUID, task_id: UUID, on: UUID, actor: str) -> Task:
    """Lets a task wait for another no longer. Raises NotFound, also if it did not."""
    _take_turns(account_id)
    task = find(account_id, task_id)
    if not TaskDependency.objects.filter(task=task, depends_on=on).delete()[0]:
        raise NotFound("The task does not wait for such a task.")
    _journal(task, "dependency_removed", str(on), actor)
    return find(account_id, task_id)


def unfinished(task: UUID | OuterRef) -> QuerySet[Task]:
    """What a task waits for that is not done. A cancelled task is not done: whoever waits for it decides anew."""
    return Task.objects.filter(dependents__task=task).exclude(status=TaskStatus.DONE)


def _take_turns(account_id: UUID) -> None:
    fetch("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"sonder:tasks:{account_id}"])


def _write(task: Task, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name == "project":
            task.project = _project(task.account_id, value)
        elif name == "parent":
            task.parent = None if value is None else find(task.account_id, value, "parent")
        else:
            setattr(task, name, value)


def _project(account_id: UUID, slug: str | None) -> Project | None:
    if slug is None:
        return None
    return Project.objects.get_or_create(account_id=account_id, slug=slug, defaults={"name": slug})[0]


def _state(task: Task) -> dict[str, Any]:
    """What a change may change, as the journal shows it."""
    plain = {name: getattr(task, name) for name in ("title", "detail", "status", "priority", "owner")}
    return {**plain, "project": task.project.slug if task.project else None, "parent": task.parent_id}


def _shown(value: object) -> str:
    return "nothing" if value in (None, "") else str(value)


def _journal(task: Task, event: str, text: str, actor: str) -> TaskEvent:
    return TaskEvent.objects.create(task=task, event=event, note=text, actor=actor)


def _refuse_early(task: Task) -> None:
    waits_for = [_named(first) for first in unfinished(task.pk).order_by("pk")[:MAX_NAMED]]
    if waits_for:
        raise Conflict(
            f"The task cannot be {task.status} yet: {'; '.join(waits_for)}. Finish what it waits for, or remove the "
            "dependency.",
            {"status": [f"{sentence}." for sentence in waits_for]},
        )


def _refuse_own_part(task: Task) -> None:
    """Raises Conflict if the new parent is the task itself or one of its parts."""
    if task.parent_id is None:
        return
    rows = fetch(
        """
        WITH RECURSIVE above(id, depth) AS (
            SELECT %s::uuid, 0
            UNION ALL SELECT t.parent_id, above.depth + 1 FROM task t JOIN above ON t.id = above.id
            WHERE t.parent_id IS NOT NULL AND above.id <> %s
        ) SELECT id FROM above ORDER BY depth
        """,
        [task.parent_id, task.pk],
    )
    above = [pk for (pk,) in rows]
    if above[-1] == task.pk:
        _refuse_circle("parent", "would be a part of itself", [task.pk, *above])


def _path(*, start: UUID, end: UUID) -> list[UUID]:
    """The shortest way from one task to another by what each waits for; empty if there is none."""
    edges: dict[UUID, list[UUID]] = {}
    for task, first in fetch(
        """
        WITH RECURSIVE reach(id) AS (
            SELECT %s::uuid UNION SELECT d.depends_on_id FROM task_dependency d JOIN reach ON d.task_id = reach.id
        ) SELECT d.task_id, d.depends_on_id FROM task_dependency d JOIN reach ON d.task_id = reach.id ORDER BY d.id
        """,
        [start],
    ):
        edges.setdefault(task, []).append(first)
    came_from, queue = {start: start}, [start]
    for task in queue:
        if task == end:
            break
        for first in edges.get(task, ()):
            if first not in came_from:
                came_from[first] = task
                queue.append(first)
    if end not in came_from:
        return []
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def _refuse_circle(field: str, would: str, circle: Sequence[UUID]) -> None:
    titles = dict(Task.objects.filter(pk__in=circle).values_list("pk", "title"))
    names = " -> ".join(f"'{titles[pk]}'" for pk in circle)
    raise Conflict(f"The task {would}: {names}.", {field: [f"closes a cycle: {names}."]})


def _named(task: Task) -> str:
    return f"it waits for '{task.title}' ({task.pk}), which is {task.status}"
