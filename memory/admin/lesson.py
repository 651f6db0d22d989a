"""Lessons and where they live. A lesson changes through services alone; here it is read, with its standing in words."""

import hashlib
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join

from memory.admin.base import ReadOnlyAdmin, RecordAdmin, Related, actor_of, as_json, bare_link, link
from memory.admin.confirming import Question, ask
from memory.errors import SonderError
from memory.models import (
    Adjudication,
    Calibration,
    Comment,
    Contradiction,
    EmbeddingSpace,
    ImportedRow,
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
from memory.services.space import BATCH, embed_anew

REEMBED = Question(
    title="Embed anew",
    words=f"The model is asked for the vectors of these lessons again, at most {BATCH} at once. `reembed` does all.",
)
NO_DATA = hashlib.sha256(b"").hexdigest()  # what a threshold rests on that a person set by hand


@admin.register(Lesson)
class LessonAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "origin", link("account"), "record", "created_at")
    list_filter = ("state", "origin", ("reviewed_at", admin.EmptyFieldListFilter), "account")
    list_select_related = ("account", "lessonstanding")
    search_fields = ("text",)
    full_text = "search"
    id_columns = ("pk", "account", "source_interaction", "source_import")
    hidden = ("search", "identifiers")
    lead = ("standing",)
    actions = ("reembed",)
    bare = {"source_interaction": (Interaction,), "supersedes": (Lesson,), "also_supersedes": (Lesson,)}
    related = (
        Related(model=LessonUsage, by="lesson"),
        Related(model=TrustEvent, by="lesson"),
        Related(model=LessonStanding, by="lesson"),
        Related(model=LessonSourceSum, by="lesson"),
        Related(model=LessonTaskSum, by="lesson"),
        Related(model=LessonPairSum, by="lesson"),
        Related(model=LessonEmbedding, by="lesson"),
        Related(model=LessonTombstone, by="source_lesson"),
        Related(model=Contradiction, by="first", label="contradictions, as the first"),
        Related(model=Contradiction, by="second", label="contradictions, as the second"),
        Related(model=ReviewItem, by="subject"),
        Related(model=Adjudication, by="subject"),
        Related(model=Comment, by="subject"),
    )

    @admin.action(description="Embed the selected lessons anew", permissions=["operate"])
    def reembed(self, request: HttpRequest, lessons: QuerySet[Any]) -> HttpResponse | None:
        """Asks the model for their vectors again; the old ones are in use until then."""
        if isinstance(choices := ask(self, request, lessons, REEMBED), TemplateResponse):
            return choices
        ids = list(lessons.values_list("pk", flat=True))
        try:
            done = embed_anew(ids, by=actor_of(request))
        except SonderError as refusal:
            self.message_user(request, refusal.detail, messages.ERROR)
            return None
        for lesson in lessons.filter(pk__in=done):
            self.log_change(request, lesson, "Embedded anew.")
        self.message_user(request, f"Embedded anew: {len(done)} of {len(ids)}.")
        return None

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
                for gate in evidence.get("gates", ())
            ),
        )
        return format_html(
            "{}<table><thead><tr><th>Gate</th><th>Value</th><th>Threshold</th><th>Passed</th><th>In words</th></tr>"
            "</thead><tbody>{}</tbody></table>",
            words,
            rows,
        )


def _yes(passed: bool) -> str:
    return "yes" if passed else "no"


@admin.register(ImportRun)
class ImportRunAdmin(ReadOnlyAdmin):
    list_display = ("name", "actor", "created_at")
    list_filter = ("actor",)
    date_hierarchy = "created_at"
    search_fields = ("name", "sha256", "actor")
    related = (Related(model=Lesson, by="source_import"),)


@admin.register(ImportedRow)
class ImportedRowAdmin(ReadOnlyAdmin):
    list_display = ("kind", "legacy_id", "subject", "refusal", link("account"), link("run"))
    list_filter = ("kind", "refusal", "account")
    list_select_related = ("account", "run")
    search_fields = ("legacy_id",)
    id_columns = ("pk", "subject", "account", "run")


if TYPE_CHECKING:  # generic in its type stubs only
    _SpaceForm = forms.ModelForm[EmbeddingSpace]
else:
    _SpaceForm = forms.ModelForm


class ThresholdsForm(_SpaceForm):
    """Six cosines, in an order that leaves no gap."""

    class Meta:
        model = EmbeddingSpace
        fields = SIMILARITIES

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        least, enough = cleaned.get("min_similarity"), cleaned.get("uncorroborated_min_similarity")
        if least is not None and enough is not None and least > enough:
            self.add_error("min_similarity", f"This may not be above uncorroborated_min_similarity, which is {enough}.")
        return cleaned


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(RecordAdmin):
    """Thresholds can be set by hand. Which space is searched is up to `reembed`, which fills a space first."""

    list_display = ("model", "revision", "dimension", "is_active", *SIMILARITIES[:2], "calibrated_at")
    list_filter = ("is_active",)
    search_fields = ("model", "revision")
    form = ThresholdsForm
    identity = ("model", "revision", "dimension", "is_active")
    facts: tuple[Any, ...] = (as_json("gate"), "calibrated_at", "id", "created_at", "links")
    readonly_fields = (*identity, *facts)
    fields = (*identity, *SIMILARITIES, *facts)
    related = (
        Related(model=LessonEmbedding, by="space"),
        Related(model=LessonTombstone, by="space"),
        Related(model=Calibration, by="space"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The change, and its entry in the journal of calibrations: by whom, and on no data."""
        before = EmbeddingSpace.objects.values(*SIMILARITIES).get(pk=obj.pk)
        after = {name: getattr(obj, name) for name in SIMILARITIES}
        if before == after:
            return
        obj.save(update_fields=SIMILARITIES)
        Calibration.objects.create(space=obj, before=before, after=after, data_digest=NO_DATA, actor=actor_of(request))


@admin.register(LessonEmbedding)
class LessonEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("id", link("lesson"), link("space"), "state", "reviewed", "created_at")
    list_filter = ("space", "state", "reviewed")
    list_select_related = ("lesson", "space")
    search_fields = ("lesson__text",)
    id_columns = ("pk", "lesson", "space", "account")


@admin.register(LessonTombstone)
class LessonTombstoneAdmin(ReadOnlyAdmin):
    """A rejected value has no text; its lesson is named while it stands."""

    list_display = ("__str__", bare_link("source_lesson", Lesson), link("account"), link("space"), "created_at")
    list_filter = ("reason", "space", "account")
    list_select_related = ("account", "space")
    search_fields = ("text_sha256", "mac_key_id")
    id_columns = ("pk", "account", "source_lesson", "successor_lesson", "source_interaction")
    bare = {"source_lesson": (Lesson,), "successor_lesson": (Lesson,), "source_interaction": (Interaction,)}
