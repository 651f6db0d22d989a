"""What all pages of the admin share: lists of constant cost, links between rows, and pages that only show."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import JSONField, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from pgvector.django import HalfVectorField

from memory.models import Contradiction, Fact, Interaction, Lesson, ReviewItem

if TYPE_CHECKING:  # generic in its type stubs only
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin

Column = Callable[[Any], Any]
ROW_LABEL = 80  # characters of a text that stand for its row
NOTHING = "-"  # what Django shows for NULL

# The column that says what a row is, of each model that a bare uuid may name.
_SAYS: Mapping[type[Model], str] = {
    Contradiction: "basis",
    Fact: "text",
    Interaction: "task",
    Lesson: "text",
    ReviewItem: "kind",
}


def page_of(model: type[Model], pk: object) -> str:
    """Address of a row's page."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[pk])


def list_of(model: type[Model], **lookups: Any) -> str:
    """Address of a model's list, narrowed by lookups."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{address}?{urlencode(lookups)}"


def actor_of(request: HttpRequest) -> str:
    """Who is at it, as journals name them."""
    return f"user:{request.user.pk}"


def _named(column: Column, name: str, *, order: str | None = None) -> Column:
    column.__name__ = name
    return admin.display(column, description=name.replace("_", " "), ordering=order)


def link(name: str) -> Column:
    """A column that links to the row of a foreign key."""

    def column(row: Model) -> str:
        target: Model | None = getattr(row, name)
        return format_html('<a href="{}">{}</a>', page_of(type(target), target.pk), target) if target else NOTHING

    return _named(column, name, order=name)


def bare_link(name: str, *models: type[Model]) -> Column:
    """A column for a uuid without a foreign key: a link while the row exists, the uuid when it is gone."""

    def column(row: Model) -> str:
        for model in models:
            if label := getattr(row, _label_of(name, model)):
                return format_html('<a href="{}">{}</a>', page_of(model, getattr(row, name)), label)
        return str(getattr(row, name) or NOTHING)

    return _named(column, name, order=name)


def _label_of(name: str, model: type[Model]) -> str:
    return f"{name}_{model._meta.model_name}_label"


def as_json(name: str) -> Column:
    """A JSON column, laid out for reading."""

    def column(row: Model) -> str:
        value = getattr(row, name)
        if value is None:
            return NOTHING
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)
        return format_html('<pre class="record">{}</pre>', text)

    return _named(column, name)


@dataclass(frozen=True, kw_only=True)
class Related:
    """The rows of another model that name this one."""

    model: type[Model]
    by: str  # the column that holds this row's id
    label: str = ""  # what the link says, if not the model's plural

    def link_from(self, row: Model) -> tuple[str, str]:
        """Address and label of their list."""
        return list_of(self.model, **{self.by: row.pk}), self.label or str(self.model._meta.verbose_name_plural)


class RecordAdmin(_ModelAdmin):
    """Newest first, in pages, with one count and one query a list. Nothing is deleted here: erasing is a service."""

    class Media:
        css = {"all": ["records.css"]}  # a file: the site's policy allows no inline style

    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    search_help_text = "Words, or the whole id of this row or of one that it names."
    # Columns that hold an id: a uuid in the search box is looked up in them exactly, by index.
    id_columns: ClassVar[tuple[str, ...]] = ("pk",)
    full_text: ClassVar[str] = ""  # an indexed tsvector column that is searched instead of `search_fields`
    # Uuids without a foreign key, and the models whose row each may name.
    bare: ClassVar[Mapping[str, tuple[type[Model], ...]]] = {}
    related: ClassVar[tuple[Related, ...]] = ()
    deletable: ClassVar[bool] = False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.deletable and super().has_delete_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Rows without their vectors, which nobody reads, and with a label for each bare uuid that resolves."""
        vectors = [f.name for f in self.opts.concrete_fields if isinstance(f, HalfVectorField)]
        labels = {
            _label_of(name, model): Subquery(
                model._default_manager.filter(pk=OuterRef(name)).values_list(Left(_SAYS[model], ROW_LABEL))[:1]
            )
            for name, models in self.bare.items()
            for model in models
        }
        rows: QuerySet[Any] = super().get_queryset(request).defer(*vectors).annotate(**labels)
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            if self.full_text and search_term.strip():
                words = SearchQuery(search_term, config="english", search_type="websearch")
                return queryset.filter(**{self.full_text: words}), False
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(Q.create([(name, wanted) for name in self.id_columns], connector=Q.OR)), False

    @admin.display(description="Related")
    def links(self, row: Model) -> str:
        """The lists of rows that name this one."""
        return format_html_join(" · ", '<a href="{}">{}</a>', (related.link_from(row) for related in self.related))


class ReadOnlyAdmin(RecordAdmin):
    """Rows that are append-only, or that only services write: a page shows every column and saves nothing."""

    hidden: ClassVar[tuple[str, ...]] = ()  # columns that the page leaves out
    lead: ClassVar[tuple[str, ...]] = ()  # what stands above the columns

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """For the actions of a list, which call services: Django's permission to change its rows."""
        return super().has_change_permission(request)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        columns = [f for f in self.opts.concrete_fields if not isinstance(f, HalfVectorField)]
        shown = [self._shown(f.name, isinstance(f, JSONField)) for f in columns if f.name not in self.hidden]
        return [*self.lead, *shown, *(["links"] if self.related else [])]

    def _shown(self, name: str, is_json: bool) -> str | Column:
        if name in self.bare:
            return bare_link(name, *self.bare[name])
        return as_json(name) if is_json else name
