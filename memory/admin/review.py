"""What waits for a person and what persons decided. Decisions are made in the review pages; an undo appends."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin, Related, bare_link, link
from memory.models import (
    Adjudication,
    AlertAcknowledgement,
    Comment,
    Contradiction,
    Interaction,
    Lesson,
    ReviewItem,
    SecondOpinion,
)

# What a question, a decision or a remark may be about.
SUBJECTS = (Lesson, Interaction, Contradiction)
subject = bare_link("subject", *SUBJECTS)


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnlyAdmin):
    list_display = ("kind", subject, "status", "priority", "claimed_by", link("account"), "created_at")
    list_filter = ("kind", "status", "account")
    list_select_related = ("account", "claimed_by")
    search_fields = ("claimed_by__username", "resolved_by__username")
    id_columns = ("pk", "account", "subject")
    bare = {"subject": SUBJECTS}
    related = (Related(model=Adjudication, by="item"),)


@admin.register(Adjudication)
class AdjudicationAdmin(ReadOnlyAdmin):
    list_display = ("verdict", subject, "reason_code", "reviewer", link("reverts"), "created_at")
    list_filter = ("verdict", "reason_code")
    list_select_related = ("reviewer", "reverts")
    date_hierarchy = "created_at"
    search_fields = ("reviewer__username", "note", "reason_code")
    id_columns = ("pk", "item", "subject", "reverts")
    bare = {"subject": SUBJECTS, "item": (ReviewItem,)}


@admin.register(Contradiction)
class ContradictionAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        bare_link("first", Lesson),
        bare_link("second", Lesson),
        "similarity",
        "decided_by",
        "created_at",
    )
    list_filter = ("basis", "verdict")
    list_select_related = ("decided_by",)
    search_fields = ("first_digest", "second_digest", "decided_by__username")
    id_columns = ("pk", "account", "first", "second")
    bare = {"first": (Lesson,), "second": (Lesson,)}


@admin.register(AlertAcknowledgement)
class AlertAcknowledgementAdmin(ReadOnlyAdmin):
    list_display = ("alert", "state", "holds", "person", link("account"), "created_at")
    list_filter = ("state", "holds", "account")
    list_select_related = ("person", "account")
    search_fields = ("alert", "note", "person__username")
    id_columns = ("pk", "account")


@admin.register(Comment)
class CommentAdmin(ReadOnlyAdmin):
    list_display = ("__str__", subject, "author", "created_at")
    list_filter = (("author", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("author",)
    search_fields = ("text", "author__username")
    id_columns = ("pk", "subject")
    bare = {"subject": SUBJECTS}


@admin.register(SecondOpinion)
class SecondOpinionAdmin(ReadOnlyAdmin):
    list_display = ("verdict", subject, "author", "created_at")
    list_filter = ("verdict",)
    list_select_related = ("author",)
    search_fields = ("author__username",)
    id_columns = ("pk", "subject")
    bare = {"subject": SUBJECTS}
