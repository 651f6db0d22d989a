"""Preferences and the journal of their changes. A preference changes by a refinement, which its journal can undo."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, link
from memory.models import Interaction, Preference, RefinementHistory


@admin.register(Preference)
class PreferenceAdmin(ReadOnlyAdmin):
    list_display = ("key", "scope", "text", "confidence", "evidence_count", "enabled", "revision", link("account"))
    list_filter = ("enabled", "account")
    list_select_related = ("account",)
    search_fields = ("key", "scope", "text")
    id_columns = ("pk", "account", "source_interaction")
    bare = {"source_interaction": (Interaction,)}
    related = (Related(model=RefinementHistory, by="preference"),)


@admin.register(RefinementHistory)
class RefinementHistoryAdmin(ReadOnlyAdmin):
    list_display = ("__str__", link("preference"), link("parent"), "expected_outcome", "actor", "created_at")
    list_filter = ("operation",)
    list_select_related = ("preference", "parent")
    date_hierarchy = "created_at"
    search_fields = ("preference__key", "actor", "expected_outcome")
    id_columns = ("pk", "preference", "parent")
