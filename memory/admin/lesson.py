"""Lessons and where they live. A lesson changes through services alone; here it is read, with its standing in words."""

import hashlib
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from memory.admin.base import ReadOnlyAdmin, RecordAdmin, Related, as_json, link
from memory.models import (
    Adjudication,
    Calibration,
    Comment,
    EmbeddingSpace,
    ImportRun,
    Interaction,
    Lesson,
    LessonEmbedding,
    LessonPairSum,
    LessonSourceSum,
    LessonStanding,
    LessonTaskSum,
    LessonTombstone,
    LessonUsage,
    ReviewItem,
    TrustEvent,
)
from memory.models.lesson import SIMILARITIES
from memory.services.reading import evidence_of

NO_DATA = hashlib.sha256(b"").hexdigest()  # what a threshold rests on that a person set by hand


@admin.register(Lesson)
class LessonAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "origin", link("account"), "record", "created_at")
    list_filter = ("state", "origin", ("reviewed_at", admin.EmptyFieldListFilter), "account")
    list_select_related = ("account", "lessonstanding")
    search_fields = ("text",)
    id_columns = ("pk", "account", "source_interaction", "source_import")
    hidden = ("search", "identifiers")
    lead = ("standing",)
    bare = {"source_interaction": (Interaction,), "supersedes": (Lesson,)}
    related = (
        Related(model=LessonUsage, by="lesson"),
        Related(model=TrustEvent, by="lesson"),
        Related(model=LessonStanding, by="lesson"),
        Related(model=LessonSourceSum, by="lesson"),
        Related(model=LessonTaskSum, by="lesson"),
        Related(model=LessonPairSum, by="lesson"),
        Related(model=LessonEmbedding, by="lesson"),
        Related(model=LessonTombstone, by="source_lesson"),
        Related(model=ReviewItem, by="subject"),
        Related(model=Adjudication, by="subject"),
        Related(model=Comment, by="subject"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Words in any form, by the index that retrieval uses."""
        found, duplicates = super().get_search_results(request, queryset, search_term)
        return found, duplicates

    @admin.display(description="Record")
    def record(self, lesson: Lesson) -> str:
        standing: LessonStanding | None = getattr(lesson, "lessonstanding", None)
        return str(standing) if standing else ""

    @admin.display(description="Standing")
    def standing(self, lesson: Lesson) -> str:
        """The standing as of now, in words, and each condition of quarantine in numbers."""
        evidence = evidence_of(lesson)
        words = format_html_join("", "<p>{}</p>", ((sentence,) for sentence in evidence["words"]))
        rows = format_html_join(
            "",
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (gate["name"], f"{gate['value']:.4g}", f"{gate['threshold']:.4g}", _yes(gate["passed"]), gate["words"])
                for gate in evidence["gates"]
            ),
        )
        head = "<tr><th>Gate</th><th>Value</th><th>Threshold</th><th>Passed</th><th>In words</th></tr>"
        return format_html("{}<table><thead>" + head + "</thead><tbody>{}</tbody></table>", words, rows)


def _yes(passed: bool) -> str:
    return "yes" if passed else "no"
