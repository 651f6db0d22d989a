"""The to-do items of agents. Each change is an event of its task, so changes come from the agents' side."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, link
from memory.models import Task, TaskDependency, TaskEvent


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = (
        "title",
        "status",
        "priority",
        "owner",
        link("project"),
        link("parent"),
        link("account"),
        "created_at",
    )
    list_filter = ("status", "account")
    list_select_related = ("project", "parent", "account")
    search_fields = ("title", "owner")
    id_columns = ("pk", "account", "project", "parent")
    related = (
        Related(model=TaskEvent, by="task"),
        Related(model=TaskDependency, by="task", label="what must come first"),
        Related(model=TaskDependency, by="depends_on", label="what waits for it"),
        Related(model=Task, by="parent", label="parts"),
    )


@admin.register(TaskEvent)
class TaskEventAdmin(ReadOnlyAdmin):
    list_display = ("event", link("task"), "actor", "created_at")
    list_filter = ("event",)
    list_select_related = ("task",)
    search_fields = ("task__title", "event", "actor")
    id_columns = ("pk", "task")


@admin.register(TaskDependency)
class TaskDependencyAdmin(ReadOnlyAdmin):
    list_display = ("id", link("task"), link("depends_on"), "created_at")
    list_filter = ("task__status", "depends_on__status")
    list_select_related = ("task", "depends_on")
    search_fields = ("task__title", "depends_on__title")
    id_columns = ("pk", "task", "depends_on")
