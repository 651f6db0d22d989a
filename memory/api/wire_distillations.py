"""Distillations on the wire. The claim's token and its holder stay inside."""

from typing import Any

from rest_framework import serializers

from memory.api.parameters import MAX_NAMED
from memory.models import LessonDistillation


class DistillationSerializer(serializers.ModelSerializer[LessonDistillation]):
    id = serializers.UUIDField(source="interaction_id", help_text="The interaction that is distilled.")

    class Meta:
        model = LessonDistillation
        fields = (
            "id", "state", "signal", "attempts", "last_error", "result_reason", "lesson", "created_at", "completed_at",
        )  # fmt: skip


class NoFieldsSerializer(serializers.Serializer[Any]):
    """A request of which the address says all."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if data:
            sentence = "is not a field of this request; it takes none."
            raise serializers.ValidationError({name: [sentence] for name in list(data)[:MAX_NAMED]})
        return {}
