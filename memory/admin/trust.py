"""Trust: the exposure log, standings, band rates, and the journal of why a lesson is where it is."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, bare_link, link
from memory.models import BandRate, Lesson, LessonStanding, LessonUsage, TrustEvent, UsageExemption


@admin.register(LessonUsage)
class LessonUsageAdmin(ReadOnlyAdmin):
    list_display = (
        "exposure",
        link("lesson"),
        link("interaction"),
        "rank",
        "outcome_signal",
        "outcome_source",
        "expected_loss",
        "created_at",
    )
    list_filter = ("exposure", "outcome_source", "outcome_signal")
    list_select_related = ("lesson", "interaction")
    search_fields = ("lesson__text", "interaction__task")
    id_columns = ("pk", "lesson", "interaction")
    related = (Related(model=UsageExemption, by="usage"),)


@admin.register(UsageExemption)
class UsageExemptionAdmin(ReadOnlyAdmin):
    list_display = ("reason", link("usage"), "reviewer", link("reverts"), "created_at")
    list_filter = (("reverts", admin.EmptyFieldListFilter),)
    list_select_related = ("usage__lesson", "reviewer", "reverts")
    date_hierarchy = "created_at"
    search_fields = ("reason", "reviewer__username")
    id_columns = ("pk", "usage", "reverts")


@admin.register(LessonStanding)
class LessonStandingAdmin(ReadOnlyAdmin):
    list_display = ("__str__", link("lesson"), "policy", "quarantined_at", "last_loss_at", "evaluated_at")
    list_filter = ("policy", ("quarantined_at", admin.EmptyFieldListFilter))
    list_select_related = ("lesson",)
    search_fields = ("lesson__text",)


@admin.register(BandRate)
class BandRateAdmin(ReadOnlyAdmin):
    list_display = ("lower", "upper", "scored", "losses", "prior", "rate", link("account"), "measured_at")
    list_filter = ("account",)
    list_select_related = ("account",)
    search_fields = ("account__slug",)
    ordering = ("account", "lower")
    id_columns = ("account",)


@admin.register(TrustEvent)
class TrustEventAdmin(ReadOnlyAdmin):
    """Append-only, and outlives its lesson."""

    list_display = ("kind", bare_link("lesson", Lesson), "actor", "created_at")
    list_filter = ("kind",)
    search_fields = ("actor",)
    id_columns = ("pk", "lesson")
    bare = {"lesson": (Lesson,)}
