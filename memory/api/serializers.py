"""What goes over the wire. Requests refuse fields that they do not know; answers are built from values, not models."""

from typing import Any, ClassVar

from django.core.validators import RegexValidator
from rest_framework import serializers

from memory.api.parameters import MAX_NAMED
from memory.models import Fact, Interaction, Lesson, Outcome, Preference
from memory.models.scope import SLUG, SLUG_WORDS
from memory.models.vocabulary import Signal
from memory.search import Candidate, Found

MAX_TASK = 20_000  # characters
MAX_RESPONSE = 200_000
MAX_DETAIL = 10_000
MAX_COUNT = 2_147_483_647

# Fields that agents try to send, and what decides them instead.
DECIDED = {
    "source": "is decided by the API key, never by a request. Leave it out.",
    "reward": "follows from the signal. Leave it out.",
    "account": "is decided by the API key. Leave it out.",
    "state": "is decided by evidence and reviewers. Leave it out.",
}


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields by name: a misspelt field must never be dropped in silence."""

    may_be_empty: ClassVar[bool] = True  # without any field, where none of them is required

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = [name for name in data if name not in known]
            if unknown:
                hint = f"is not a field of this request; it knows {', '.join(known)}."
                raise serializers.ValidationError({name: [DECIDED.get(name, hint)] for name in unknown[:MAX_NAMED]})
            if not data and not self.may_be_empty:
                raise serializers.ValidationError({"body": [f"name at least one of {', '.join(known)}."]})
        return super().to_internal_value(data)


class StrictCharField(serializers.CharField):
    """A string, and nothing that merely looks like one: numbers and booleans are refused."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictIntegerField(serializers.IntegerField):
    """A JSON integer: no text, no fraction, no boolean."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictBooleanField(serializers.BooleanField):
    """JSON true or false."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class SlugField(StrictCharField):
    """A project's slug. Python's `$` would let a line feed through at the end."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=63, trim_whitespace=False, **kwargs)
        self.validators.append(RegexValidator(SLUG.removesuffix("$") + r"\Z", f"use {SLUG_WORDS}."))


class SignalField(serializers.ChoiceField):
    """A word of the signal vocabulary, which a refusal lists."""

    default_error_messages = {"invalid_choice": f"choose one of {', '.join(Signal.values)}."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Signal.choices, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice")
        return str(super().to_internal_value(data))


class TaskSerializer(StrictSerializer):
    """The part that starting and looking up share."""

    task = StrictCharField(max_length=MAX_TASK, help_text="What is to be done, in words.")
    project = SlugField(required=False, allow_null=True, help_text="Made on first use.")
    k = StrictIntegerField(min_value=1, max_value=50, default=5, help_text="How many lessons at most.")


class StartSerializer(TaskSerializer):
    session = StrictCharField(required=False, allow_null=True, max_length=200, help_text="Your id of the conversation.")
    tier = StrictCharField(required=False, allow_blank=True, default="", max_length=40)
    model = StrictCharField(required=False, allow_blank=True, default="", max_length=200)
    retrieve = StrictBooleanField(default=True, help_text="false records the interaction without lessons.")


class RetrieveSerializer(TaskSerializer):
    explain = StrictBooleanField(default=False, help_text="Adds every candidate with its numbers.")


class FinishSerializer(StrictSerializer):
    may_be_empty = False
    response = StrictCharField(
        required=False, allow_null=True, allow_blank=True, max_length=MAX_RESPONSE, trim_whitespace=False
    )
    tokens_in = StrictIntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_COUNT)
    tokens_out = StrictIntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_COUNT)
    token_source = StrictCharField(required=False, allow_blank=True, max_length=40)


class ReportSerializer(StrictSerializer):
    signal = SignalField()
    detail = StrictCharField(required=False, allow_blank=True, default="", max_length=MAX_DETAIL)


# Answers


class LessonHandedOutSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    score = serializers.FloatField(help_text="Fused rank score with usage boost and age factor.")
    similarity = serializers.FloatField(allow_null=True, help_text="Cosine with the task, -1 to 1.")
    lexical_rank = serializers.IntegerField(allow_null=True)
    standing = serializers.ChoiceField(["active", "trial", "probation"])


class PreferenceSerializer(serializers.ModelSerializer[Preference]):
    class Meta:
        model = Preference
        fields = ("id", "scope", "key", "text", "confidence")


class FactSerializer(serializers.ModelSerializer[Fact]):
    class Meta:
        model = Fact
        fields = ("id", "key", "text", "valid_from", "valid_until", "recorded_at")


class StartedSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    lessons = LessonHandedOutSerializer(many=True)
    mode = serializers.ChoiceField(["hybrid", "lexical", "none"])
    context = serializers.CharField(  # type: ignore[assignment]  # a wire name that DRF uses for itself
        help_text="Paste this into the prompt; it holds exactly the lessons listed."
    )
    preferences = PreferenceSerializer(many=True)
    facts = FactSerializer(many=True)


class ConsideredSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    reason = serializers.CharField(allow_blank=True, help_text="Why it is out; empty when it is in.")
    cosine = serializers.FloatField(allow_null=True)
    shared_anchors = serializers.IntegerField(help_text="Content words of the task that the lesson has.")
    coverage = serializers.FloatField(help_text="Share of the task's idf that they carry.")
    semantic_rank = serializers.IntegerField(allow_null=True)
    lexical_rank = serializers.IntegerField(allow_null=True)
    fused_score = serializers.FloatField()
    usage_boost = serializers.FloatField()
    age_factor = serializers.FloatField()
    score = serializers.FloatField()
    gate = serializers.CharField(help_text="What the relevance gate said: passed, or why not.")
    mmr = serializers.FloatField(allow_null=True, help_text="Marginal relevance when it was picked.")


class LookedUpSerializer(serializers.Serializer[Any]):
    lessons = LessonHandedOutSerializer(many=True)
    mode = serializers.ChoiceField(["hybrid", "lexical"])
    note = serializers.CharField(required=False, help_text="Why meaning was not used, in lexical mode.")
    explain = ConsideredSerializer(many=True, required=False)


class InteractionSerializer(serializers.ModelSerializer[Interaction]):
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    session = serializers.SlugRelatedField[Any](slug_field="external_id", read_only=True, allow_null=True)

    class Meta:
        model = Interaction
        fields = (
            "id", "created_at", "task", "project", "session", "tier", "model", "response", "tokens_in", "tokens_out",
            "token_source", "retrieved_context",
        )  # fmt: skip


class OutcomeSerializer(serializers.ModelSerializer[Outcome]):
    reward = serializers.FloatField()

    class Meta:
        model = Outcome
        fields = ("id", "interaction", "signal", "reward", "source", "sequence", "detail", "created_at", "credited_at")


class ReportedSerializer(serializers.ModelSerializer[Outcome]):
    reward = serializers.FloatField()

    class Meta:
        model = Outcome
        fields = ("id", "signal", "reward", "source")


class LessonSerializer(serializers.ModelSerializer[Lesson]):
    class Meta:
        model = Lesson
        fields = (
            "id", "text", "state", "origin", "source_ref", "supersedes", "also_supersedes", "reviewed_at", "created_at",
        )  # fmt: skip


class NeighbourSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    state = serializers.CharField()
    similarity = serializers.FloatField()


def standing_of(candidate: Candidate) -> str:
    """On what terms a lesson is handed out."""
    if candidate.state == "quarantined":
        return "probation"
    return "trial" if candidate.on_trial else "active"


def handed_out(found: Found) -> dict[str, Any]:
    """One lesson of an answer."""
    ranked = found.ranked
    c = ranked.candidate
    return {
        "id": c.lesson_id,
        "text": c.text,
        "score": ranked.score,
        "similarity": c.cosine,
        "lexical_rank": ranked.lexical_rank,
        "standing": "probation" if c.state == "quarantined" else "trial" if c.on_trial else "active",
    }
