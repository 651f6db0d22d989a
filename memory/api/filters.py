"""Filters of the lists."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField

from memory.models import (
    Contradiction,
    Fact,
    Interaction,
    Lesson,
    LessonDistillation,
    Outcome,
    Preference,
    Session,
    Task,
)
from memory.models.vocabulary import (
    DistillationReason,
    DistillationState,
    LessonState,
    Origin,
    OutcomeSource,
    Signal,
    TaskStatus,
)
from memory.services.agent_task import unfinished
from memory.services.fact import known

MAX_WORDS = 1000  # characters of a search in the lessons' text


class WordFilter(filters.ChoiceFilter):
    """One word of a closed vocabulary, which a refusal lists."""

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        listed = list(words)
        sentence = f"choose one of {', '.join(listed)}."
        super().__init__(
            choices=[(word, word) for word in listed], error_messages={"invalid_choice": sentence}, **kwargs
        )


class TruthField(forms.Field):
    """`true` or `false`. Django's own field takes any other word for no answer, and the list would show everything."""

    widget = forms.TextInput

    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if value not in {"true", "false"}:
            raise ValidationError("use true or false.")
        return bool(value == "true")


class TruthFilter(filters.BooleanFilter):
    field_class = TruthField

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=forms.TextInput, **kwargs)


class MomentField(IsoDateTimeField):
    """A time in UTC. PostgreSQL refuses some of the offsets that ISO 8601 allows."""

    def to_python(self, value: Any) -> datetime | None:
        moment: datetime | None = super().to_python(value)
        try:
            return moment.astimezone(UTC) if moment is not None else None
        except OverflowError:
            raise ValidationError("is beyond the calendar.") from None


class MomentFilter(filters.IsoDateTimeFilter):
    field_class = MomentField


class InteractionFilter(filters.FilterSet):
    project = filters.CharFilter(field_name="project__slug")
    session = filters.CharFilter(field_name="session__external_id")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Interaction
        fields: list[str] = []


class OutcomeFilter(filters.FilterSet):
    interaction = filters.UUIDFilter(field_name="interaction_id")
    source = WordFilter(OutcomeSource.values)
    signal = WordFilter(Signal.values)
    credited = TruthFilter(field_name="credited_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = Outcome
        fields: list[str] = []


class LessonFilter(filters.FilterSet):
    state = WordFilter(LessonState.values)
    origin = WordFilter(Origin.values)
    q = filters.CharFilter(method="words", max_length=MAX_WORDS, label="Words that the text has, in any form.")
    project = filters.CharFilter(method="learned_in", label="Slug of the project it was learned in.")
    reviewed = TruthFilter(field_name="reviewed_at", lookup_expr="isnull", exclude=True)
    has_contradiction = TruthFilter(method="contradicted")
    ordering = WordFilter(["-created_at", "created_at"], method="ordered", label="Newest or oldest first.")

    class Meta:
        model = Lesson
        fields: list[str] = []

    def words(self, lessons: QuerySet[Lesson], name: str, value: str) -> QuerySet[Lesson]:
        return lessons.filter(search=SearchQuery(value, config="english", search_type="websearch"))

    def learned_in(self, lessons: QuerySet[Lesson], name: str, value: str) -> QuerySet[Lesson]:
        sources = Interaction.objects.filter(account_id=self.request.auth.account_id, project__slug=value)
        return lessons.filter(source_interaction__in=sources.values("pk"))

    def contradicted(self, lessons: QuerySet[Lesson], name: str, value: bool) -> QuerySet[Lesson]:
        either = Q(first=OuterRef("pk")) | Q(second=OuterRef("pk"))
        flagged = Exists(Contradiction.objects.filter(either, verdict__isnull=True))
        return lessons.filter(flagged if value else ~flagged)

    def ordered(self, lessons: QuerySet[Lesson], name: str, value: str) -> QuerySet[Lesson]:
        """The list's pagination orders, since its cursor depends on the order."""
        return lessons


class PreferenceFilter(filters.FilterSet):
    scope = filters.CharFilter(field_name="scope")
    enabled = TruthFilter(field_name="enabled")

    class Meta:
        model = Preference
        fields: list[str] = []


class FactFilter(filters.FilterSet):
    project = filters.CharFilter(field_name="project__slug")
    key = filters.CharFilter(field_name="key")
    q = filters.CharFilter(method="words", max_length=MAX_WORDS, label="Words that the text has, in any form.")
    as_of = MomentFilter(method="nothing", label="Only what was true then.")
    believed_at = MomentFilter(method="nothing", label="As the store believed then; default: now.")

    class Meta:
        model = Fact
        fields: list[str] = []

    def words(self, found: QuerySet[Fact], name: str, value: str) -> QuerySet[Fact]:
        query = SearchQuery(value, config="english", search_type="websearch")
        return found.annotate(words=SearchVector("text", config="english")).filter(words=query)

    def nothing(self, found: QuerySet[Fact], name: str, value: datetime) -> QuerySet[Fact]:
        return found  # both times together decide: see `filter_queryset`

    def filter_queryset(self, queryset: QuerySet[Fact]) -> QuerySet[Fact]:
        found: QuerySet[Fact] = super().filter_queryset(queryset)
        chosen = {name: self.form.cleaned_data.get(name) for name in ("as_of", "believed_at")}
        return found.filter(pk__in=known(self.request.auth.account_id, **chosen).values("pk"))


class DistillationFilter(filters.FilterSet):
    state = WordFilter(DistillationState.values)
    result_reason = WordFilter(DistillationReason.values)

    class Meta:
        model = LessonDistillation
        fields: list[str] = []


class SessionFilter(filters.FilterSet):
    project = filters.CharFilter(field_name="project__slug")
    external_id = filters.CharFilter(field_name="external_id")

    class Meta:
        model = Session
        fields: list[str] = []


class TaskFilter(filters.FilterSet):
    status = WordFilter(TaskStatus.values)
    project = filters.CharFilter(field_name="project__slug")
    owner = filters.CharFilter(field_name="owner")
    parent = filters.UUIDFilter(field_name="parent_id")
    ready = TruthFilter(method="startable", label="Pending, and all that it waits for is done.")

    class Meta:
        model = Task
        fields: list[str] = []

    def startable(self, tasks: QuerySet[Task], name: str, value: bool) -> QuerySet[Task]:
        ready = Q(~Exists(unfinished(OuterRef("pk"))), status=TaskStatus.PENDING)
        return tasks.filter(ready if value else ~ready)


class ContradictionFilter(filters.FilterSet):
    open = TruthFilter(field_name="verdict", lookup_expr="isnull", label="Nobody has decided yet.")
    lesson = filters.UUIDFilter(method="about", label="One of its sides.")

    class Meta:
        model = Contradiction
        fields: list[str] = []

    def about(self, rows: QuerySet[Contradiction], name: str, value: UUID) -> QuerySet[Contradiction]:
        return rows.filter(Q(first=value) | Q(second=value))
