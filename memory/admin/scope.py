"""Accounts, projects and memberships: what an operator sets up."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from memory.admin.base import RecordAdmin, Related, link
from memory.models import Account, ApiKey, Interaction, Lesson, Membership, Preference, Project, Session, Task


@admin.register(Account)
class AccountAdmin(RecordAdmin):
    list_display = ("slug", "name", "review_policy", "created_at")
    list_filter = ("review_policy",)
    search_fields = ("slug", "name")
    ordering = ("slug",)
    readonly_fields = ("id", "created_at", "links")
    related = tuple(
        Related(model=model, by="account")
        for model in (Project, ApiKey, Membership, Interaction, Lesson, Preference, Session, Task)
    )

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("slug", "name", "review_policy")
        return (*own, "id", "created_at", "links") if obj else own


@admin.register(Project)
class ProjectAdmin(RecordAdmin):
    """The slug stays as it is: preferences name their project by it."""

    list_display = ("slug", link("account"), "name", "created_at")
    list_filter = ("account",)
    list_select_related = ("account",)
    search_fields = ("slug", "name", "account__slug")
    ordering = ("account__slug", "slug")
    autocomplete_fields = ("account",)
    id_columns = ("pk", "account")
    related = (Related(model=Interaction, by="project"), Related(model=Session, by="project"))

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("account", "slug", "name")
        return (*own, "id", "created_at", "links") if obj else own

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("account", "slug", "id", "created_at", "links") if obj else ()


@admin.register(Membership)
class MembershipAdmin(RecordAdmin):
    """What a person may do can be taken away; what they did stays."""

    deletable = True
    list_display = ("user", link("account"), "role", "created_at")
    list_filter = ("role", "account")
    list_select_related = ("account", "user")
    search_fields = ("user__username", "account__slug")
    autocomplete_fields = ("account", "user")
    id_columns = ("pk", "account")
