"""Interactions, what was said of them, and the sessions they belong to. Agents write these; nobody edits them."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, link
from memory.models import (
    Credit,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonUsage,
    Outcome,
    ReviewItem,
    Session,
    SessionProjectSummary,
    SessionTurnClaim,
)


@admin.register(Interaction)
class InteractionAdmin(ReadOnlyAdmin):
    list_display = ("__str__", link("account"), link("project"), link("api_key"), "tier", "model", "created_at")
    list_filter = ("account", "tier", "token_source")
    list_select_related = ("account", "project", "api_key")
    search_fields = ("task", "idempotency_key")
    id_columns = ("pk", "account", "project", "session", "api_key")
    related = (
        Related(model=Outcome, by="interaction"),
        Related(model=LessonUsage, by="interaction"),
        Related(model=Credit, by="interaction"),
        Related(model=LessonDistillation, by="interaction"),
        Related(model=Lesson, by="source_interaction"),
        Related(model=ReviewItem, by="subject"),
    )


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    """Append-only: a correction is another outcome, reported with a credential that says who judged."""

    list_display = ("__str__", link("interaction"), "reward", "sequence", "created_at", "credited_at")
    list_filter = ("source", "signal", ("credited_at", admin.EmptyFieldListFilter))
    list_select_related = ("interaction",)
    search_fields = ("interaction__task", "detail")
    id_columns = ("pk", "interaction", "api_key")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("external_id", "title", link("account"), link("project"), "created_at")
    list_filter = ("account",)
    list_select_related = ("account", "project")
    search_fields = ("external_id", "title")
    id_columns = ("pk", "account", "project")
    related = (
        Related(model=Interaction, by="session"),
        Related(model=SessionProjectSummary, by="session"),
        Related(model=SessionTurnClaim, by="session"),
    )


@admin.register(SessionProjectSummary)
class SessionProjectSummaryAdmin(ReadOnlyAdmin):
    list_display = ("id", link("session"), link("project"), "created_at")
    list_filter = ("session__account",)
    list_select_related = ("session", "project")
    search_fields = ("session__external_id", "project__slug", "summary")
    id_columns = ("pk", "session", "project")


@admin.register(SessionTurnClaim)
class SessionTurnClaimAdmin(ReadOnlyAdmin):
    """Who writes in a session now. The token is what entitles its holder, so it is on no page."""

    list_display = ("session_id", link("session"), "owner", "claimed_at", "expires_at")
    list_filter = ("session__account",)
    list_select_related = ("session",)
    search_fields = ("session__external_id", "owner")
    hidden = ("claim_token",)
