"""Distillation: what may become a lesson, how far it is, and why it went no further."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, bare_link, link
from memory.models import Lesson, LessonDistillation


@admin.register(LessonDistillation)
class LessonDistillationAdmin(ReadOnlyAdmin):
    """The token is what entitles its holder to finish, so it is on no page."""

    list_display = (
        "state",
        link("interaction"),
        "result_reason",
        bare_link("lesson", Lesson),
        "attempts",
        "last_error",
        "created_at",
    )
    list_filter = ("state", "result_reason", "signal")
    list_select_related = ("interaction",)
    search_fields = ("interaction__task", "owner", "last_error")
    id_columns = ("pk", "lesson")
    bare = {"lesson": (Lesson,)}
    hidden = ("claim_token",)
