"""Credit and the running sums: written by crediting alone, and equal to their rebuild to the last digit."""

from typing import ClassVar

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, link
from memory.models import (
    Credit,
    LessonPairSum,
    LessonSourceSum,
    LessonSum,
    LessonTaskSum,
    SourceSum,
    TaskSum,
    WithheldSum,
)


@admin.register(Credit)
class CreditAdmin(ReadOnlyAdmin):
    list_display = ("credit_seq", link("interaction"), link("outcome"), "y", "weight", "b", link("account"))
    list_filter = ("source", "y", "account")
    list_select_related = ("interaction", "outcome", "account")
    search_fields = ("task_digest", "interaction__task")
    id_columns = ("pk", "account", "outcome")


@admin.register(SourceSum)
class SourceSumAdmin(ReadOnlyAdmin):
    list_display = ("source", "n", "losses", link("account"))
    list_filter = ("source", "account")
    list_select_related = ("account",)
    search_fields = ("source", "account__slug")
    id_columns = ("account",)


@admin.register(TaskSum)
class TaskSumAdmin(ReadOnlyAdmin):
    list_display = ("task_digest", "o", "e", link("account"))
    list_filter = ("account",)
    list_select_related = ("account",)
    search_fields = ("task_digest",)
    id_columns = ("account",)


class LessonSumsAdmin(ReadOnlyAdmin):
    """What all sums of a lesson share."""

    list_select_related: ClassVar[tuple[str, ...]] = ("lesson",)
    search_fields: ClassVar[tuple[str, ...]] = ("lesson__text",)
    id_columns: ClassVar[tuple[str, ...]] = ("lesson",)


@admin.register(LessonSum)
class LessonTotalAdmin(LessonSumsAdmin):
    list_display = ("lesson_id", link("lesson"), "o", "e")
    list_filter = ("lesson__state",)


@admin.register(WithheldSum)
class WithheldSumAdmin(LessonSumsAdmin):
    list_display = ("exposure", link("lesson"), "n", "o", "e")
    list_filter = ("exposure", "lesson__state")


@admin.register(LessonSourceSum)
class LessonSourceSumAdmin(LessonSumsAdmin):
    list_display = ("source", link("lesson"), "n", "losses", "reward")
    list_filter = ("source", "lesson__state")


@admin.register(LessonTaskSum)
class LessonTaskSumAdmin(LessonSumsAdmin):
    list_display = ("task_digest", link("lesson"), "o", "e")
    list_filter = ("lesson__state",)
    search_fields = ("task_digest", "lesson__text")


@admin.register(LessonPairSum)
class LessonPairSumAdmin(LessonSumsAdmin):
    list_display = ("id", link("lesson"), link("other"), "o", "e")
    list_filter = ("lesson__state",)
    list_select_related = ("lesson", "other")
    search_fields = ("lesson__text", "other__text")
    id_columns = ("lesson", "other")
