"""Distillation: what may become a lesson, how far it is, and why it went no further."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from memory.admin.base import ReadOnlyAdmin, actor_of, bare_link, link
from memory.admin.confirming import AT_ONCE, Question, ask
from memory.errors import SonderError
from memory.models import Lesson, LessonDistillation
from memory.services import distillation
from memory.services.caller import Caller

Act = Callable[[Caller, UUID], LessonDistillation]
RETRY: Final = Question(
    title="Try again", words="Each of these that has failed gets all its attempts back, and waits for a worker."
)
CANCEL: Final = Question(
    title="Call off", words="None of these becomes a lesson any more. What has ended already stays as it is."
)


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
    actions = ("retry", "cancel")

    @admin.action(description="Try the selected distillations again", permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
        """Gives failed ones all their attempts back."""
        return self._each(request, rows, RETRY, distillation.retry, "Waiting again")

    @admin.action(description="Call the selected distillations off", permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
        """Ends open ones, also those that a worker is at."""
        return self._each(request, rows, CANCEL, distillation.cancel, "Called off")

    def _each(
        self, request: HttpRequest, rows: QuerySet[Any], question: Question, act: Act, done: str
    ) -> HttpResponse | None:
        """Asks, then does it to each row that lets it, and says why to which not."""
        if isinstance(choices := ask(self, request, rows, question), TemplateResponse):
            return choices
        taken, refused = list(rows[:AT_ONCE]), defaultdict[str, list[LessonDistillation]](list)
        for row in taken:
            account = row.interaction.account_id
            who = Caller(account_id=account, source="unknown", actor=actor_of(request), user_id=request.user.pk)
            try:
                act(who, row.pk)
            except SonderError as refusal:
                refused[refusal.detail].append(row)
            else:
                self.log_change(request, row, f"{done}.")
        for why, (first, *others) in refused.items():  # one message for each reason: they are kept in the session
            also = f" and {len(others)} more" if others else ""
            self.message_user(request, f"{first}{also}: {why}", messages.WARNING)
        n = len(taken) - sum(map(len, refused.values()))
        self.message_user(request, f"{done}: {n} of {len(taken)}.")
        return None
