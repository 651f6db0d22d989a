"""A lesson's evidence over the wire. Rows of other accounts become a count: never their task, response or ids."""

from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from rest_framework import serializers

from memory.models import ApiKey, Membership, TrustEvent
from memory.services.quarantine import SYSTEM

AGENT_ELSEWHERE: Final = "an agent of another account"
PERSON_ELSEWHERE: Final = "a person outside your account"


class GateSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.FloatField()
    threshold = serializers.FloatField()
    passed = serializers.BooleanField()
    words = serializers.CharField()


class EvidenceRowSerializer(serializers.Serializer[Any]):
    interaction = serializers.UUIDField()
    task = serializers.CharField(help_text="First digits of the task's digest; equal for equal tasks.")
    source = serializers.CharField()  # type: ignore[assignment]  # a wire name that DRF uses for itself
    signal = serializers.CharField()
    reward = serializers.FloatField()
    exposure = serializers.CharField()
    cohort = serializers.IntegerField(help_text="Lessons handed out together.")
    at = serializers.DateTimeField()
    share = serializers.FloatField(
        required=False, help_text="`reference`: what this loss is worth against this lesson, 1 / cohort."
    )
    expected = serializers.FloatField(
        required=False, help_text="`trial`: probability of a loss if the lesson did nothing; odds(rate) times factors."
    )
    rate = serializers.FloatField(required=False)
    task_factor = serializers.FloatField(required=False)
    peer_factor = serializers.FloatField(required=False)
    niche_factor = serializers.FloatField(required=False)
    odds = serializers.FloatField(required=False, help_text="`trial`: the ledger's odds after this row.")


class ComparisonSerializer(serializers.Serializer[Any]):
    """How much work was lost, and how much was to be expected."""

    n = serializers.IntegerField()
    lost = serializers.IntegerField()
    expected = serializers.FloatField()


class ControlsSerializer(serializers.Serializer[Any]):
    """Work that the lesson was left out of, by what left it out."""

    coin = ComparisonSerializer(required=False)
    quarantine = ComparisonSerializer(required=False)


class EvidenceSerializer(serializers.Serializer[Any]):
    lesson = serializers.UUIDField()
    state = serializers.CharField()
    on_trial = serializers.BooleanField(help_text="A coin decides whether it is handed out.")
    quarantined_at = serializers.DateTimeField(allow_null=True)
    words = serializers.ListField(child=serializers.CharField(), help_text="The standing in sentences.")
    wins = serializers.IntegerField()
    losses = serializers.IntegerField()
    policy = serializers.CharField(help_text="`trial` or `reference`; some figures belong to one of them.")
    constants = serializers.DictField()
    gates = GateSerializer(many=True)
    odds = serializers.FloatField(
        required=False,
        help_text="`trial`: how many times likelier the record is if the lesson multiplies the odds of losing.",
    )
    loss_tasks = serializers.IntegerField(required=False, help_text="`trial`: tasks among the losses.")
    enough_to_judge = serializers.BooleanField(required=False, help_text="`trial`: servings that the eye could judge.")
    with_it = ComparisonSerializer(required=False, help_text="`trial`: the most incriminating stretch.")
    without_it = ControlsSerializer(required=False, help_text="`trial`: the controls.")
    epoch = serializers.DictField(required=False, help_text="`reference`: the losses since the last win.")
    band = serializers.DictField(required=False, help_text="`reference`: loss rate of lessons scored as often.")
    p_value = serializers.FloatField(required=False, allow_null=True, help_text="`reference`.")
    rows = EvidenceRowSerializer(many=True, help_text="The rows that the decision rests on, of your account.")
    rows_elsewhere = serializers.IntegerField(help_text="Such rows of other accounts, as a count.")


class Viewer:
    """The account that looks at a history, and whom of the actors in it it may know."""

    def __init__(self, account_id: UUID) -> None:
        self.account_id = account_id

    @cached_property
    def _own(self) -> frozenset[str]:
        keys = ApiKey.objects.filter(account_id=self.account_id).values_list("prefix", flat=True)
        people = [
            *Membership.objects.filter(account_id=self.account_id).values_list("user_id", flat=True),
            *get_user_model().objects.filter(is_superuser=True).values_list("pk", flat=True),  # of every account
        ]
        return frozenset({*(f"api_key:{prefix}" for prefix in keys), *(f"user:{person}" for person in people)})

    def knows(self, actor: str) -> bool:
        """Whether it is the system, a key or a person of the account, or an operator of the store."""
        return actor == SYSTEM or actor in self._own

    def name(self, actor: str) -> str:
        """The actor, or no more than what kind of outsider it is."""
        if self.knows(actor):
            return actor
        return AGENT_ELSEWHERE if actor.startswith("api_key:") else PERSON_ELSEWHERE


class TrustEventSerializer(serializers.ModelSerializer[TrustEvent]):
    """Takes a `Viewer` as its context's `viewer`."""

    evidence = serializers.SerializerMethodField()
    actor = serializers.SerializerMethodField(
        help_text=f"`system`, `api_key:<prefix>` or `user:<id>`; outside your account only `{AGENT_ELSEWHERE}` or "
        f"`{PERSON_ELSEWHERE}`."
    )

    class Meta:
        model = TrustEvent
        fields = ("id", "kind", "evidence", "actor", "created_at")

    def get_evidence(self, event: TrustEvent) -> dict[str, Any]:
        """The evidence with rows of other accounts reduced to a count, and without what outsiders wrote."""
        viewer: Viewer = self.context["viewer"]
        shown = confined(event.evidence, viewer.account_id)
        if not viewer.knows(event.actor):
            shown.pop("reason", None)
        return shown

    def get_actor(self, event: TrustEvent) -> str:
        viewer: Viewer = self.context["viewer"]
        return viewer.name(event.actor)


def confined(evidence: dict[str, Any], account_id: Any) -> dict[str, Any]:
    """Evidence as one account may see it: another account's rows become a count."""
    shown = dict(evidence)
    if isinstance(evidence.get("rows"), list):  # a merge counts the rows that it moved under the same name
        own = [row for row in evidence["rows"] if row["account"] == str(account_id)]
        shown["rows"] = [{key: value for key, value in row.items() if key != "account"} for row in own]
        shown["rows_elsewhere"] = len(evidence["rows"]) - len(own)
    for name in ("interaction", "usage"):
        shown.pop(name, None)  # it may be another account's
    return shown
