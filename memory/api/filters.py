"""Filters of the lists. An unknown parameter is refused: a misspelt filter must not show everything."""

from typing import Any

from django import forms
from django.contrib.postgres.search import SearchQuery
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import rest_framework as filters

from memory.models import Contradiction, Interaction, Lesson, Outcome
from memory.models.vocabulary import LessonState, Origin, OutcomeSource, Signal

PAGING = {"cursor", "page_size", "format"}


class StrictFilterSet(filters.FilterSet):
    """Refuses parameters that it does not know."""

    def get_form_class(self) -> type[forms.Form]:
        base: type[forms.Form] = super().get_form_class()
        known = set(self.filters) | PAGING

        class StrictForm(base):  # type: ignore[misc, valid-type]
            def clean(self) -> dict[str, Any]:
                cleaned: dict[str, Any] = super().clean()
                for name in set(self.data) - known:
                    self.errors[name] = self.error_class(
                        [f"is not a parameter of this list; it knows {', '.join(sorted(known))}."]
                    )
                return cleaned

        return StrictForm


class InteractionFilter(StrictFilterSet):
    project = filters.CharFilter(field_name="project__slug")
    session = filters.CharFilter(field_name="session__external_id")
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Interaction
        fields: list[str] = []


class OutcomeFilter(StrictFilterSet):
    interaction = filters.UUIDFilter(field_name="interaction_id")
    source = filters.ChoiceFilter(choices=OutcomeSource.choices)
    signal = filters.ChoiceFilter(choices=Signal.choices)
    credited = filters.BooleanFilter(field_name="credited_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = Outcome
        fields: list[str] = []


class LessonFilter(StrictFilterSet):
    state = filters.ChoiceFilter(choices=LessonState.choices)
    origin = filters.ChoiceFilter(choices=Origin.choices)
    q = filters.CharFilter(method="words", label="Words that the text has, in any form.")
    project = filters.CharFilter(method="learned_in", label="Slug of the project it was learned in.")
    reviewed = filters.BooleanFilter(field_name="reviewed_at", lookup_expr="isnull", exclude=True)
    has_contradiction = filters.BooleanFilter(method="contradicted")
    ordering = filters.OrderingFilter(fields={"id": "created_at"}, label="created_at or -created_at.")

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
        return lessons.filter(Exists(Contradiction.objects.filter(either, verdict__isnull=True), negated=not value))
