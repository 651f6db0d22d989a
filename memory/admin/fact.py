"""Facts. A correction retracts one and records another, so that what was believed when can still be told."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, link
from memory.models import Fact


@admin.register(Fact)
class FactAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "key", link("project"), link("account"), "valid_from", "valid_until", "retracted_at")
    list_filter = (("retracted_at", admin.EmptyFieldListFilter), "account")
    list_select_related = ("project", "account")
    search_fields = ("text", "key", "project__slug")
    id_columns = ("pk", "account", "project", "supersedes")
    bare = {"supersedes": (Fact,)}
