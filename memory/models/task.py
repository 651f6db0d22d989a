"""The to-do items of agents, their history and what must come first."""

import pgtrigger
from django.db import models
from django.db.models import F, Q

from memory.models.base import Recorded, SealedTrigger, append_only, not_empty, one_of, refuse
from memory.models.scope import Account, Project
from memory.models.vocabulary import TaskStatus


class Task(Recorded):
    """Something to do."""

    account = models.ForeignKey(Account, models.PROTECT, db_index=False)
    project = models.ForeignKey(Project, models.PROTECT, null=True, blank=True)
    title = models.CharField(max_length=300)
    detail = models.TextField(blank=True)
    status = models.CharField(max_length=12, choices=TaskStatus.choices)
    priority = models.IntegerField()
    owner = models.CharField(max_length=200, blank=True)
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True)

    class Meta:
        db_table = "task"
        constraints = [not_empty("task", "title"), one_of("task", "status", TaskStatus.values)]
        indexes = [models.Index(fields=["account", "status", "priority", "-created_at"], name="task_account_status")]

    def __str__(self) -> str:
        return self.title


class TaskEvent(Recorded):
    """Something that happened to a task."""

    task = models.ForeignKey(Task, models.PROTECT)
    event = models.CharField(max_length=40)
    note = models.TextField(blank=True)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "task_event"
        constraints = [not_empty("task_event", "event")]
        triggers = [append_only("task_event")]

    def __str__(self) -> str:
        return self.event


class TaskDependency(Recorded):
    """`task` cannot start before `depends_on` is done. There are no cycles."""

    task = models.ForeignKey(Task, models.CASCADE, db_index=False, related_name="dependencies")
    depends_on = models.ForeignKey(Task, models.CASCADE, related_name="dependents")

    class Meta:
        db_table = "task_dependency"
        constraints = [
            models.UniqueConstraint(fields=["task", "depends_on"], name="task_dependency_unique"),
            models.CheckConstraint(
                name="task_dependency_not_self",
                condition=~Q(task=F("depends_on")),
                violation_error_message="a task cannot depend on itself.",
            ),
        ]
        triggers = [
            SealedTrigger(
                name="task_dependency_acyclic",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                # A task that waits for itself is left to its CHECK, which says so.
                condition=pgtrigger.Condition("NEW.task_id <> NEW.depends_on_id"),
                func=f"""
                    -- Two inserts that close a cycle together must see each other.
                    PERFORM pg_advisory_xact_lock(hashtextextended('task_dependency', 0));
                    IF EXISTS (
                        WITH RECURSIVE reach(id) AS (
                            SELECT NEW.depends_on_id
                            UNION SELECT d.depends_on_id FROM task_dependency d JOIN reach ON d.task_id = reach.id
                                WHERE d.id <> NEW.id
                        ) SELECT 1 FROM reach WHERE id = NEW.task_id
                    ) THEN
                        {refuse("task_dependency_acyclic", "the dependency closes a cycle")}
                    END IF;
                    RETURN NEW;
                """,
            )
        ]

    def __str__(self) -> str:
        return f"{self.task} after {self.depends_on}"
