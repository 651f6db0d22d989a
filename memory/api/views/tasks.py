"""The to-do items of agents, their journal, and what must come first."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.filters import TaskFilter
from memory.api.serializers import SlugField, StrictCharField, StrictIntegerField, StrictSerializer
from memory.api.views.base import WriteView, rendered, validated
from memory.models import Task, TaskEvent
from memory.models.vocabulary import TaskStatus
from memory.services import agent_task as tasks
from memory.services.idempotency import Answer

MAX_TITLE, MAX_OWNER = 300, 200  # characters
MAX_DETAIL = 10_000


class AgentTaskSerializer(serializers.ModelSerializer[Task]):
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    parent = serializers.UUIDField(  # type: ignore[assignment]  # a wire name that DRF uses for itself
        source="parent_id", allow_null=True
    )
    depends_on = serializers.SerializerMethodField(help_text="The tasks that must be done first.")

    class Meta:
        model = Task
        fields = (
            "id", "title", "detail", "status", "priority", "project", "owner", "parent", "depends_on", "created_at",
        )  # fmt: skip

    def get_depends_on(self, task: Task) -> list[UUID]:
        return sorted(dependency.depends_on_id for dependency in task.dependencies.all())


class TaskEventSerializer(serializers.ModelSerializer[TaskEvent]):
    task = serializers.UUIDField(source="task_id")

    class Meta:
        model = TaskEvent
        fields = ("id", "task", "event", "note", "actor", "created_at")


class StatusField(serializers.ChoiceField):
    """A status, which a refusal lists."""

    default_error_messages = {"invalid_choice": f"choose one of {', '.join(TaskStatus.values)}."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(TaskStatus.choices, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice")
        return str(super().to_internal_value(data))


class ChangeTaskSerializer(StrictSerializer):
    may_be_empty = False
    title = StrictCharField(required=False, max_length=MAX_TITLE)
    detail = StrictCharField(
        required=False, allow_blank=True, max_length=MAX_DETAIL, trim_whitespace=False, help_text="Empty clears it."
    )
    status = StatusField(required=False)
    priority = StrictIntegerField(
        required=False, min_value=tasks.FIRST, max_value=tasks.LAST, help_text=f"{tasks.FIRST} comes first."
    )
    project = SlugField(required=False, allow_null=True, help_text="Made on first use.")
    owner = StrictCharField(
        required=False, allow_blank=True, max_length=MAX_OWNER, help_text="Who does it; empty is nobody."
    )
    parent = serializers.UUIDField(  # type: ignore[assignment]  # a wire name that DRF uses for itself
        required=False, allow_null=True, help_text="The task that it is a part of."
    )


class NewTaskSerializer(ChangeTaskSerializer):
    may_be_empty = True  # by this rule; the title is what an empty one lacks
    title = StrictCharField(max_length=MAX_TITLE)


class NoteSerializer(StrictSerializer):
    note = StrictCharField(max_length=MAX_DETAIL)


class DependSerializer(StrictSerializer):
    depends_on = serializers.UUIDField(help_text="The task that must be done first.")


class TasksView(WriteView, ListAPIView[Task]):
    """Tasks of the key's account."""

    scopes = {"GET": "read", "POST": "loop"}
    serializer_class = AgentTaskSerializer
    filterset_class = TaskFilter

    def get_queryset(self) -> QuerySet[Task]:
        if getattr(self, "swagger_fake_view", False):
            return Task.objects.none()
        return tasks.tasks_of(self.caller.account_id)

    @extend_schema(request=NewTaskSerializer, responses={201: AgentTaskSerializer})
    def post(self, request: Request) -> Response:
        """Adds something to do."""
        new = tasks.NewTask(**validated(NewTaskSerializer, request.data))

        def act() -> Answer:
            task = tasks.create(self.caller.account_id, new, self.caller.actor)
            return Answer(status=201, body=rendered(AgentTaskSerializer, task))

        return self.write(request, act)


class TaskView(WriteView):
    """One task."""

    scopes = {"GET": "read", "PATCH": "loop"}

    @extend_schema(responses=AgentTaskSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """The task as it stands."""
        return Response(AgentTaskSerializer(tasks.find(self.caller.account_id, pk)).data)

    @extend_schema(request=ChangeTaskSerializer, responses=AgentTaskSerializer)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Changes the named fields; 409 says what must be done before it can start."""
        changes = validated(ChangeTaskSerializer, request.data)

        def act() -> Answer:
            task = tasks.change(self.caller.account_id, pk, changes, self.caller.actor)
            return Answer(status=200, body=rendered(AgentTaskSerializer, task))

        return self.write(request, act)


class TaskEventsView(WriteView, ListAPIView[TaskEvent]):
    """What happened to one task, newest first."""

    scopes = {"GET": "read", "POST": "loop"}
    serializer_class = TaskEventSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[TaskEvent]:
        if getattr(self, "swagger_fake_view", False):
            return TaskEvent.objects.none()
        return TaskEvent.objects.filter(task=tasks.find(self.caller.account_id, self.kwargs["pk"]))

    @extend_schema(request=NoteSerializer, responses={201: TaskEventSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Adds a note."""
        text = validated(NoteSerializer, request.data)["note"]

        def act() -> Answer:
            event = tasks.note(self.caller.account_id, pk, text, self.caller.actor)
            event.refresh_from_db(fields=["created_at"])
            return Answer(status=201, body=rendered(TaskEventSerializer, event))

        return self.write(request, act)


class TaskDependenciesView(WriteView):
    """What a task waits for."""

    scopes = {"POST": "loop"}

    @extend_schema(request=DependSerializer, responses={201: AgentTaskSerializer, 200: AgentTaskSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Makes the task wait for another; 409 names the cycle that this would close. 200 if it waits already."""
        on = validated(DependSerializer, request.data)["depends_on"]

        def act() -> Answer:
            task, new = tasks.depend(self.caller.account_id, pk, on, self.caller.actor)
            return Answer(status=201 if new else 200, body=rendered(AgentTaskSerializer, task))

        return self.write(request, act)


class TaskDependencyView(WriteView):
    """One task that another waits for."""

    scopes = {"DELETE": "loop"}

    @extend_schema(request=None, responses=AgentTaskSerializer)
    def delete(self, request: Request, pk: UUID, depends_on: UUID) -> Response:
        """Lets the task wait for it no longer."""

        def act() -> Answer:
            task = tasks.release(self.caller.account_id, pk, depends_on, self.caller.actor)
            return Answer(status=200, body=rendered(AgentTaskSerializer, task))

        return self.write(request, act)
