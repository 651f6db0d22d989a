"""Reading lessons: the list, one, its evidence, its history, its neighbours."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api import evidence
from memory.api import serializers as wire
from memory.api.filters import LessonFilter
from memory.api.pagination import CreatedPagination
from memory.api.views.base import ScopedView
from memory.api.views.erasing import Erasable
from memory.models import Lesson, TrustEvent
from memory.models.scope import scoped
from memory.services.reading import evidence_of, lesson_for, neighbours_of
from memory.services.scoping import lesson_account


class LessonPagination(CreatedPagination):
    """Newest first, or oldest first with `ordering=created_at`."""

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return ("id",) if request.query_params.get("ordering") == "created_at" else ("-id",)


class LessonsView(ScopedView, ListAPIView[Lesson]):
    """Lessons that the key's account may see."""

    serializer_class = wire.LessonSerializer
    filterset_class = LessonFilter
    pagination_class = LessonPagination

    def get_queryset(self) -> QuerySet[Lesson]:
        if getattr(self, "swagger_fake_view", False):
            return Lesson.objects.none()
        return Lesson.objects.filter(scoped(lesson_account(self.caller.account_id)))


class LessonView(Erasable):
    """One lesson."""

    scopes = {"GET": "read", "DELETE": "admin"}
    kind = "lesson"

    @extend_schema(responses=wire.LessonSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """The lesson as it stands."""
        return Response(wire.LessonSerializer(lesson_for(self.caller.account_id, pk)).data)


class LessonEvidenceView(ScopedView):
    """Why a lesson is where it is."""

    @extend_schema(responses=evidence.EvidenceSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Every gate with its value and threshold, the losses with their cohorts, and the standing in words."""
        lesson = lesson_for(self.caller.account_id, pk)
        shown = evidence.confined(evidence_of(lesson), self.caller.account_id)
        return Response(evidence.EvidenceSerializer(shown).data)


class LessonHistoryView(ScopedView, ListAPIView[TrustEvent]):
    """What happened to a lesson's standing, newest first."""

    serializer_class = evidence.TrustEventSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[TrustEvent]:
        if getattr(self, "swagger_fake_view", False):
            return TrustEvent.objects.none()
        return TrustEvent.objects.filter(lesson=lesson_for(self.caller.account_id, self.kwargs["pk"]).pk)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "viewer": evidence.Viewer(self.caller.account_id)}


class LessonNeighboursView(ScopedView):
    """Similar lessons."""

    @extend_schema(responses=wire.NeighbourSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """The ten most similar live lessons, by cosine."""
        lesson = lesson_for(self.caller.account_id, pk)
        return Response(wire.NeighbourSerializer(neighbours_of(lesson), many=True).data)
