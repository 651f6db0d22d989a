"""Running the store: refused writes, replayed requests, jobs, calibrations, prune plans, operators and erasures."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, bare_link, link
from memory.models import (
    Calibration,
    ErasureRecord,
    IdempotencyRecord,
    Interaction,
    JobRun,
    Lesson,
    OperatorAct,
    PruneArchive,
    PrunePlan,
    WriteRefusal,
)


@admin.register(WriteRefusal)
class WriteRefusalAdmin(ReadOnlyAdmin):
    list_display = ("reason", "path", "actor", "digest", link("account"), "created_at")
    list_filter = ("reason", "path", "account")
    list_select_related = ("account",)
    search_fields = ("digest", "actor")
    id_columns = ("pk", "account")


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    list_display = ("key", "status", link("account"), "created_at")
    list_filter = ("status", "account")
    list_select_related = ("account",)
    search_fields = ("key",)
    id_columns = ("pk", "account")


@admin.register(JobRun)
class JobRunAdmin(ReadOnlyAdmin):
    list_display = ("job", "outcome", "started_at", "finished_at", "figures")
    list_filter = ("job", "outcome")
    date_hierarchy = "started_at"
    search_fields = ("job", "outcome")


@admin.register(Calibration)
class CalibrationAdmin(ReadOnlyAdmin):
    list_display = ("id", link("space"), "actor", "created_at")
    list_filter = ("space",)
    list_select_related = ("space",)
    date_hierarchy = "created_at"
    search_fields = ("actor", "data_digest", "space__model")
    id_columns = ("pk", "space")


@admin.register(PrunePlan)
class PrunePlanAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "created_at", "applied_at")
    list_filter = (("applied_at", admin.EmptyFieldListFilter),)
    date_hierarchy = "created_at"
    search_fields = ("digest",)
    related = (Related(model=PruneArchive, by="plan"),)


@admin.register(PruneArchive)
class PruneArchiveAdmin(ReadOnlyAdmin):
    list_display = ("kind", bare_link("lesson", Lesson), link("plan"), "created_at", "expires_at")
    list_filter = ("kind",)
    list_select_related = ("plan",)
    search_fields = ("kind", "plan__digest")
    id_columns = ("pk", "lesson", "plan")
    bare = {"lesson": (Lesson,)}


@admin.register(OperatorAct)
class OperatorActAdmin(ReadOnlyAdmin):
    list_display = ("action", bare_link("subject", Interaction, Lesson), "detail", "actor", "created_at")
    list_filter = ("action",)
    date_hierarchy = "created_at"
    search_fields = ("detail", "actor")
    id_columns = ("pk", "subject", "account")
    bare = {"subject": (Interaction, Lesson)}


@admin.register(ErasureRecord)
class ErasureRecordAdmin(ReadOnlyAdmin):
    """The subject is gone: there is nothing to link to."""

    list_display = ("kind", "subject", "counts", "actor", "created_at")
    list_filter = ("kind",)
    date_hierarchy = "created_at"
    search_fields = ("kind", "actor")
    id_columns = ("pk", "subject")
