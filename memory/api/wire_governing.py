"""Contradictions and plans for pruning on the wire. A plan stores no text: what it shows is read with it."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.api.serializers import StrictCharField, StrictSerializer
from memory.models import Contradiction, Lesson, PrunePlan
from memory.models.vocabulary import LessonState
from memory.services.applying import Exclusion, Outcome
from memory.services.planned import Seen, clusters_of, lessons_of, see

MAX_REASON = 500  # characters
MAX_EXCLUDED = 1000


class StrictUUIDField(serializers.UUIDField):
    """A UUID as text: a number that could be read as one is refused."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return UUID(str(super().to_internal_value(data)))


class SideSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField(allow_null=True, help_text="Null if the lesson is gone.")
    state = serializers.ChoiceField(LessonState.values, allow_null=True)


class ContradictionSerializer(serializers.ModelSerializer[Contradiction]):
    first = serializers.SerializerMethodField()
    second = serializers.SerializerMethodField()

    class Meta:
        model = Contradiction
        fields = ("id", "first", "second", "similarity", "basis", "verdict", "created_at")

    @extend_schema_field(SideSerializer)
    def get_first(self, row: Contradiction) -> dict[str, Any]:
        return self._side(row.first)

    @extend_schema_field(SideSerializer)
    def get_second(self, row: Contradiction) -> dict[str, Any]:
        return self._side(row.second)

    def _side(self, lesson_id: UUID) -> dict[str, Any]:
        lesson: Lesson | None = self.context["lessons"].get(lesson_id)
        known = {"text": lesson.text, "state": lesson.state} if lesson else {"text": None, "state": None}
        return dict(SideSerializer({"id": lesson_id, **known}).data)


class PlannedSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField(allow_null=True, help_text="Null if the lesson is gone.")
    caller = serializers.IntegerField(allow_null=True, help_text="Interactions with it that a caller judged.")
    machine = serializers.IntegerField(allow_null=True, help_text="Interactions with it that the runtime judged.")
    wins = serializers.IntegerField(allow_null=True)


class PlannedMemberSerializer(PlannedSerializer):
    similarity = serializers.FloatField(help_text="Cosine with the keeper.")


class ClusterSerializer(serializers.Serializer[Any]):
    keeper = PlannedSerializer()
    members = PlannedMemberSerializer(many=True, help_text="What would be merged into it, nearest first.")


class PlanSerializer(serializers.Serializer[Any]):
    digest = serializers.CharField(help_text="What applying the plan must name.")
    created_at = serializers.DateTimeField()
    prune_similarity = serializers.FloatField(help_text="Lowest cosine of two lessons that are merged.")
    lessons = serializers.IntegerField(help_text="How many would be merged into others.")
    clusters = ClusterSerializer(many=True)


class ExclusionSerializer(StrictSerializer):
    lesson = StrictUUIDField()
    reason = StrictCharField(max_length=MAX_REASON)


class ApplySerializer(StrictSerializer):
    digest = StrictCharField(max_length=64, help_text="Of the plan that was read.")
    exclude = serializers.ListField(
        child=ExclusionSerializer(),
        required=False,
        default=list,
        max_length=MAX_EXCLUDED,
        help_text="Lessons that stay, and why.",
    )


class SkippedSerializer(serializers.Serializer[Any]):
    lesson = serializers.UUIDField()
    reason = serializers.CharField(help_text="What has changed about it since the plan was made.")


class AppliedClusterSerializer(serializers.Serializer[Any]):
    keeper = serializers.UUIDField()
    pruned = serializers.ListField(child=serializers.UUIDField())
    excluded = serializers.ListField(child=serializers.UUIDField())
    skipped = SkippedSerializer(many=True, help_text="Where this is not empty, nothing of the cluster was merged.")


class AppliedSerializer(serializers.Serializer[Any]):
    digest = serializers.CharField()
    pruned = serializers.IntegerField(help_text="Lessons that were merged into others.")
    clusters = AppliedClusterSerializer(many=True)


def plan_as_json(plan: PrunePlan) -> dict[str, Any]:
    """The plan with the texts and the evidence as they are now."""
    clusters = clusters_of(plan)
    seen = see(lesson for cluster in clusters for lesson in lessons_of(cluster))
    return {
        "digest": plan.digest,
        "created_at": plan.created_at,
        "prune_similarity": plan.states["prune_similarity"],
        "lessons": sum(len(cluster.members) for cluster in clusters),
        "clusters": [
            {
                "keeper": _planned(cluster.keeper, seen),
                "members": [{**_planned(m.lesson, seen), "similarity": m.cosine} for m in cluster.members],
            }
            for cluster in clusters
        ],
    }


def _planned(lesson: UUID, seen: Mapping[UUID, Seen]) -> dict[str, Any]:
    if lesson not in seen:
        return {"id": lesson, "text": None, "caller": None, "machine": None, "wins": None}
    figures = seen[lesson].contender
    return {
        "id": lesson,
        "text": seen[lesson].text,
        "caller": figures.caller,
        "machine": figures.machine,
        "wins": figures.wins,
    }


def exclusions(fields: Iterable[Mapping[str, Any]]) -> list[Exclusion]:
    """What a request leaves out."""
    return [Exclusion(lesson=each["lesson"], reason=each["reason"]) for each in fields]


def outcomes_as_json(digest: str, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What became of a plan."""
    told = list(outcomes)
    return {
        "digest": digest,
        "pruned": sum(len(outcome.pruned) for outcome in told),
        "clusters": [
            {
                "keeper": outcome.keeper,
                "pruned": outcome.pruned,
                "excluded": outcome.excluded,
                "skipped": [{"lesson": lesson, "reason": reason} for lesson, reason in outcome.skipped.items()],
            }
            for outcome in told
        ],
    }
