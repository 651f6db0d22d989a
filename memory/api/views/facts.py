"""Facts, in two times."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.filters import FactFilter
from memory.api.serializers import SlugField, StrictCharField, StrictSerializer
from memory.api.views.base import WriteView, rendered, validated
from memory.models import Fact
from memory.services import fact as facts
from memory.services.idempotency import Answer

MAX_TEXT = 2000


class FactDetailSerializer(serializers.ModelSerializer[Fact]):
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = Fact
        fields = (
            "id", "project", "key", "text", "valid_from", "valid_until", "recorded_at", "retracted_at", "supersedes",
        )  # fmt: skip


class RecordSerializer(StrictSerializer):
    project = SlugField(help_text="Made on first use.")
    text = StrictCharField(max_length=MAX_TEXT)
    key = StrictCharField(required=False, allow_null=True, max_length=200, help_text="What it is about.")
    valid_from = serializers.DateTimeField(required=False, allow_null=True, help_text="When it began to be true.")
    valid_until = serializers.DateTimeField(required=False, allow_null=True, help_text="When it ceased to be true.")


class CorrectSerializer(StrictSerializer):
    may_be_empty = False
    text = StrictCharField(required=False, max_length=MAX_TEXT)
    valid_from = serializers.DateTimeField(required=False, allow_null=True)
    valid_until = serializers.DateTimeField(required=False, allow_null=True)


class EmptySerializer(StrictSerializer):
    """A body without fields."""


class FactsView(WriteView, ListAPIView[Fact]):
    """Facts of the key's account."""

    scopes = {"GET": "read", "POST": "loop"}
    serializer_class = FactDetailSerializer
    filterset_class = FactFilter

    def get_queryset(self) -> QuerySet[Fact]:
        if getattr(self, "swagger_fake_view", False):
            return Fact.objects.none()
        return Fact.objects.filter(account_id=self.caller.account_id).select_related("project").defer("embedding")

    @extend_schema(request=RecordSerializer, responses={201: FactDetailSerializer})
    def post(self, request: Request) -> Response:
        """Records a fact. One key of a project has one value at a time: 409 if another is valid then."""
        new = facts.NewFact(**validated(RecordSerializer, request.data))

        def act() -> Answer:
            return Answer(status=201, body=rendered(FactDetailSerializer, facts.record(self.caller.account_id, new)))

        return self.write(request, act)


class RetractView(WriteView):
    """Retracting a fact."""

    scopes = {"POST": "loop"}

    @extend_schema(request=EmptySerializer, responses={200: FactDetailSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Stops believing it. It stays visible to `believed_at` before now."""
        validated(EmptySerializer, request.data)

        def act() -> Answer:
            return Answer(status=200, body=rendered(FactDetailSerializer, facts.retract(self.caller.account_id, pk)))

        return self.write(request, act)


class CorrectView(WriteView):
    """Correcting a fact."""

    scopes = {"POST": "loop"}

    @extend_schema(request=CorrectSerializer, responses={201: FactDetailSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Retracts the fact and records the corrected one, at one moment."""
        correction = facts.Correction(changes=validated(CorrectSerializer, request.data))

        def act() -> Answer:
            fact = facts.correct(self.caller.account_id, pk, correction)
            return Answer(status=201, body=rendered(FactDetailSerializer, fact))

        return self.write(request, act)
