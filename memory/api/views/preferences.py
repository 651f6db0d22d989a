"""Preferences and the refinements that change them."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.filters import PreferenceFilter
from memory.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from memory.api.views.base import ScopedView, WriteView, rendered, validated
from memory.errors import NotFound
from memory.models import Preference, RefinementHistory
from memory.services import preference as preferences
from memory.services.idempotency import Answer


class PreferenceDetailSerializer(serializers.ModelSerializer[Preference]):
    class Meta:
        model = Preference
        fields = ("id", "scope", "key", "text", "confidence", "evidence_count", "enabled", "revision", "created_at")


class EvidenceField(serializers.JSONField):
    """A list of {"kind": "outcome", "id": uuid} and {"kind": "note", "text": sentence}."""

    def to_internal_value(self, data: Any) -> list[dict[str, str]]:
        if not isinstance(data, list):
            raise serializers.ValidationError("give a list of pieces of evidence.")
        return [self._piece(piece) for piece in data[: preferences.MAX_EVIDENCE + 1]]

    def _piece(self, piece: Any) -> dict[str, str]:
        kind = piece.get("kind") if isinstance(piece, dict) else None
        if kind == "outcome" and set(piece) == {"kind", "id"}:
            return {"kind": kind, "id": str(serializers.UUIDField().run_validation(piece["id"]))}
        if kind == "note" and set(piece) == {"kind", "text"}:
            return {"kind": kind, "text": StrictCharField(max_length=1000).run_validation(piece["text"])}
        raise serializers.ValidationError('each piece is {"kind": "outcome", "id": …} or {"kind": "note", "text": …}.')


class RefineSerializer(StrictSerializer):
    expected_version = StrictIntegerField(min_value=1, help_text="The revision you read.")
    text = StrictCharField(required=False, max_length=preferences.MAX_TEXT)
    enabled = StrictBooleanField(required=False)
    evidence = EvidenceField(help_text='1 to 16 of {"kind": "outcome", "id"} or {"kind": "note", "text"}.')
    expected_outcome = StrictCharField(max_length=preferences.MAX_EXPECTED, help_text="What should get better.")


class RollBackSerializer(StrictSerializer):
    expected_version = StrictIntegerField(min_value=1, help_text="The revision you read.")


class RefinementSerializer(serializers.ModelSerializer[RefinementHistory]):
    before = serializers.JSONField(source="before_json")
    after = serializers.JSONField(source="after_json")
    evidence = serializers.JSONField(source="evidence_json")

    class Meta:
        model = RefinementHistory
        fields = (
            "id", "preference", "operation", "parent", "before_version", "after_version", "before", "after", "evidence",
            "expected_outcome", "actor", "created_at",
        )  # fmt: skip


class PreferencesView(ScopedView, ListAPIView[Preference]):
    """Preferences of the key's account."""

    serializer_class = PreferenceDetailSerializer
    filterset_class = PreferenceFilter

    def get_queryset(self) -> QuerySet[Preference]:
        if getattr(self, "swagger_fake_view", False):
            return Preference.objects.none()
        return Preference.objects.filter(account_id=self.caller.account_id)


class RefinementsView(WriteView, ListAPIView[RefinementHistory]):
    """The changes of one preference, newest first, and the only way to make one."""

    scopes = {"GET": "read", "POST": "govern"}
    serializer_class = RefinementSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[RefinementHistory]:
        if getattr(self, "swagger_fake_view", False):
            return RefinementHistory.objects.none()
        own = Preference.objects.filter(pk=self.kwargs["pk"], account_id=self.caller.account_id)
        if not own.exists():
            raise NotFound("There is no such preference in your account.")
        return RefinementHistory.objects.filter(preference_id=self.kwargs["pk"])

    @extend_schema(request=RefineSerializer, responses={201: RefinementSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Changes text or enabled if the preference still is at the version you read; else 409 with the current."""
        fields = validated(RefineSerializer, request.data)
        refinement = preferences.Refinement(
            expected_version=fields["expected_version"],
            changes={name: fields[name] for name in ("text", "enabled") if name in fields},
            evidence=fields["evidence"],
            expected_outcome=fields["expected_outcome"],
        )

        def act() -> Answer:
            entry = preferences.refine(self.caller.account_id, pk, refinement, self.caller.actor)
            return Answer(status=201, body=rendered(RefinementSerializer, entry))

        return self.write(request, act)


class RollbackView(WriteView):
    """Taking a refinement back."""

    scopes = {"POST": "govern"}

    @extend_schema(request=RollBackSerializer, responses={201: RefinementSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Writes what was before as a new revision; 409 says why that is not possible."""
        fields = validated(RollBackSerializer, request.data)

        def act() -> Answer:
            entry = preferences.roll_back(self.caller.account_id, pk, fields["expected_version"], self.caller.actor)
            return Answer(status=201, body=rendered(RefinementSerializer, entry))

        return self.write(request, act)
