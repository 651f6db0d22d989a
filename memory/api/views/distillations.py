"""Distillations: what became of each interaction that was worth learning from, and an operator's two verbs."""

from collections.abc import Callable
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.filters import DistillationFilter
from memory.api.pagination import CreatedPagination
from memory.api.views.base import ScopedView, WriteView, rendered, validated
from memory.api.wire_distillations import DistillationSerializer, NoFieldsSerializer
from memory.models import LessonDistillation
from memory.services import distillation
from memory.services.caller import Caller
from memory.services.idempotency import Answer


class DistillationPagination(CreatedPagination):
    """By the interaction's id: newest first."""

    ordering = "-interaction_id"


class DistillationsView(ScopedView, ListAPIView[LessonDistillation]):
    """Distillations of the key's account."""

    serializer_class = DistillationSerializer
    filterset_class = DistillationFilter
    pagination_class = DistillationPagination

    def get_queryset(self) -> QuerySet[LessonDistillation]:
        if getattr(self, "swagger_fake_view", False):
            return LessonDistillation.objects.none()
        return LessonDistillation.objects.filter(interaction__account_id=self.caller.account_id)


class GovernView(WriteView):
    """Base of an operator's verbs."""

    scopes = {"POST": "govern"}

    def decide(self, request: Request, pk: UUID, verb: Callable[[Caller, UUID], LessonDistillation]) -> Response:
        """Does it, and answers with the distillation as it is then."""
        validated(NoFieldsSerializer, request.data)

        def act() -> Answer:
            return Answer(status=200, body=rendered(DistillationSerializer, verb(self.caller, pk)))

        return self.write(request, act)


class DistillationRetryView(GovernView):
    """Trying again."""

    @extend_schema(request=None, responses={200: DistillationSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Gives a failed distillation all its attempts back. 409 if it has not failed, or nothing speaks for it now."""
        return self.decide(request, pk, distillation.retry)


class DistillationCancelView(GovernView):
    """Calling off."""

    @extend_schema(request=None, responses={200: DistillationSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Calls a distillation off for good, also one that a worker is at. 409 if it has ended already."""
        return self.decide(request, pk, distillation.cancel)
