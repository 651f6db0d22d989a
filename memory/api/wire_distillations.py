"""Distillations on the wire. The claim's token and its holder stay inside."""

from rest_framework import serializers

from memory.api.serializers import StrictSerializer
from memory.models import LessonDistillation


class DistillationSerializer(serializers.ModelSerializer[LessonDistillation]):
    id = serializers.UUIDField(source="interaction_id", help_text="The interaction that is distilled.")

    class Meta:
        model = LessonDistillation
        fields = (
            "id", "state", "signal", "attempts", "last_error", "result_reason", "lesson", "created_at", "completed_at",
        )  # fmt: skip


class NoFieldsSerializer(StrictSerializer):
    """A request that the address says all about."""
