"""Governing the store: what may contradict itself, and what says the same."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api import wire_governing as wire
from memory.api.filters import ContradictionFilter
from memory.api.views.base import ScopedView, WriteView, idempotency_key, rendered, validated
from memory.models import Contradiction, IdempotencyRecord, Lesson
from memory.models.scope import scoped
from memory.services import applying, pruning
from memory.services.contradiction import NEAR_DUPLICATE
from memory.services.idempotency import Answer
from memory.services.scoping import lesson_account


class ContradictionsView(ScopedView, ListAPIView[Contradiction]):
    """Pairs of lessons that may contradict each other, newest first. A person decides, in the browser."""

    serializer_class = wire.ContradictionSerializer
    filterset_class = ContradictionFilter
    _lessons: dict[Any, Lesson]

    def get_queryset(self) -> QuerySet[Contradiction]:
        if getattr(self, "swagger_fake_view", False):
            return Contradiction.objects.none()
        rows = Contradiction.objects.filter(scoped(lesson_account(self.caller.account_id)))
        return rows.exclude(basis=NEAR_DUPLICATE)  # pairs that somebody keeps apart although they agree

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        """The page, with the lessons of all its rows in one query."""
        page = super().paginate_queryset(queryset)
        self._lessons = Lesson.objects.in_bulk([side for row in page or () for side in (row.first, row.second)])
        return page

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "lessons": getattr(self, "_lessons", {})}


class PrunePlanView(ScopedView):
    """What would be merged."""

    scopes: ClassVar[dict[str, str]] = {"GET": "govern"}

    @extend_schema(responses=wire.PlanSerializer)
    def get(self, request: Request) -> Response:
        """The current plan, made anew if the store has moved. It changes no lesson; applying names its digest."""
        plan = pruning.current(lesson_account(self.caller.account_id))
        return Response(wire.PlanSerializer(wire.plan_as_json(plan)).data)


class PruneApplyView(WriteView):
    """Merging what a plan says."""

    scopes: ClassVar[dict[str, str]] = {"POST": "govern"}

    @extend_schema(request=wire.ApplySerializer, responses={200: wire.AppliedSerializer})
    def post(self, request: Request) -> Response:
        """Applies a plan, a cluster at a time; what changed since is skipped. 409 if the store has moved.

        Applied twice it is applied once. A maintainer can undo it for 30 days.
        """
        fields = validated(wire.ApplySerializer, request.data)
        key = idempotency_key(request)
        # Clusters are transactions of their own, and not parts of the one in which the answer is kept. A key that was
        # used before has its answer, or is refused.
        used = key and IdempotencyRecord.objects.filter(account_id=self.caller.account_id, key=key).exists()
        answer = None if used else self._apply(fields)
        return self.write(request, lambda: answer or self._apply(fields))

    def _apply(self, fields: dict[str, Any]) -> Answer:
        outcomes = applying.apply(
            lesson_account(self.caller.account_id),
            fields["digest"],
            actor=self.caller.actor,
            exclude=wire.exclusions(fields["exclude"]),
        )
        body = wire.outcomes_as_json(fields["digest"], outcomes)
        return Answer(status=200, body=rendered(wire.AppliedSerializer, body))
