"""The loop: start an interaction, finish it, report an outcome, look lessons up."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api import serializers as wire
from memory.api.filters import InteractionFilter, OutcomeFilter
from memory.api.views.base import ScopedView, WriteView, idempotency_key, rendered, validated
from memory.api.views.erasing import Erasable
from memory.errors import NotFound
from memory.models import Account, Interaction, Outcome
from memory.search import Ranked, Retrieved, embed_query
from memory.services import interaction as interactions
from memory.services import outcome as outcomes
from memory.services.idempotency import Answer
from memory.services.retrieval import look_up


class InteractionsView(WriteView, ListAPIView[Interaction]):
    """Interactions of the key's account."""

    scopes = {"GET": "read", "POST": "loop"}
    serializer_class = wire.InteractionSerializer
    filterset_class = InteractionFilter

    def get_queryset(self) -> QuerySet[Interaction]:
        if getattr(self, "swagger_fake_view", False):
            return Interaction.objects.none()
        own = Interaction.objects.filter(account_id=self.caller.account_id)
        return own.select_related("project", "session").defer("task_embedding")

    @extend_schema(request=wire.StartSerializer, responses={201: wire.StartedSerializer})
    def post(self, request: Request) -> Response:
        """Starts an interaction and hands out the lessons that fit its task. An empty list is a right answer."""
        fields = validated(wire.StartSerializer, request.data)
        key = idempotency_key(request)
        query = embed_query(fields["task"]) if fields["retrieve"] else None
        start = interactions.Start(**fields, idempotency_key=key)

        def act() -> Answer:
            started = interactions.start(self.caller, start, query)
            return Answer(status=201, body=rendered(wire.StartedSerializer, _started(started)))

        return self.write(request, act)


def _started(started: interactions.Started) -> dict[str, Any]:
    return {
        "id": started.interaction.pk,
        "lessons": [wire.handed_out(found) for found in started.handed_out.lessons],
        "mode": started.handed_out.mode,
        "context": started.handed_out.context,
        "preferences": started.preferences,
        "facts": started.facts,
    }


class InteractionView(Erasable, RetrieveAPIView[Interaction]):
    """One interaction of the key's account."""

    scopes = {"GET": "read", "PATCH": "loop", "DELETE": "admin"}
    kind = "interaction"
    serializer_class = wire.InteractionSerializer
    queryset = Interaction.objects.all()

    def get_object(self) -> Interaction:
        own = Interaction.objects.filter(pk=self.kwargs["pk"], account_id=self.caller.account_id)
        interaction = own.select_related("project", "session").defer("task_embedding").first()
        if interaction is None:
            raise NotFound("There is no such interaction in your account.")
        return interaction

    @extend_schema(request=wire.FinishSerializer, responses={200: wire.InteractionSerializer})
    def patch(self, request: Request, pk: UUID) -> Response:
        """Adds what the agent answered. Fields left out stay as they are."""
        fields = validated(wire.FinishSerializer, request.data)

        def act() -> Answer:
            interactions.finish(self.caller, pk, interactions.Finish(changes=fields))
            return Answer(status=200, body=rendered(wire.InteractionSerializer, self.get_object()))

        return self.write(request, act)


class InteractionOutcomesView(WriteView):
    """Outcomes of one interaction."""

    scopes = {"POST": "loop"}

    @extend_schema(
        request=wire.ReportSerializer, responses={200: wire.ReportedSerializer, 201: wire.ReportedSerializer}
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Reports how the work went. Who judged comes from the key; the latest word of a source counts."""
        fields = validated(wire.ReportSerializer, request.data)

        def act() -> Answer:
            outcome, new = outcomes.report(self.caller, pk, fields["signal"], fields["detail"])
            return Answer(status=201 if new else 200, body=rendered(wire.ReportedSerializer, outcome))

        return self.write(request, act)


class OutcomesView(ScopedView, ListAPIView[Outcome]):
    """Every outcome reported in the key's account, newest first."""

    serializer_class = wire.OutcomeSerializer
    filterset_class = OutcomeFilter

    def get_queryset(self) -> QuerySet[Outcome]:
        if getattr(self, "swagger_fake_view", False):
            return Outcome.objects.none()
        return Outcome.objects.filter(interaction__account_id=self.caller.account_id)


class RetrieveView(ScopedView):
    """Looking lessons up without consequences."""

    scopes = {"POST": "loop"}

    @extend_schema(request=wire.RetrieveSerializer, responses={200: wire.LookedUpSerializer})
    def post(self, request: Request) -> Response:
        """The lessons that fit a task. Nothing is recorded, and no quarantined lesson is let through."""
        fields = validated(wire.RetrieveSerializer, request.data)
        query = embed_query(fields["task"])
        account = Account.objects.get(pk=self.caller.account_id)
        with transaction.atomic():
            found = look_up(account, query, fields["k"])
        body: dict[str, Any] = {"lessons": [wire.handed_out(f) for f in found.chosen], "mode": found.mode}
        if query.note:
            body["note"] = query.note
        if fields["explain"]:
            body["explain"] = explanation(found)
        return Response(wire.LookedUpSerializer(body).data)


def explanation(found: Retrieved) -> list[dict[str, Any]]:
    """Every candidate with its numbers, best first."""
    values = {f.ranked.candidate.lesson_id: f.mmr for f in found.chosen}
    return [_considered(ranked, reason, values) for ranked, reason in found.considered]


def _considered(ranked: Ranked, reason: str, mmr: dict[UUID, float | None]) -> dict[str, Any]:
    c = ranked.candidate
    return {
        "id": c.lesson_id,
        "text": c.text,
        "reason": reason,
        "cosine": c.cosine,
        "shared_anchors": c.shared_anchors,
        "coverage": c.coverage,
        "semantic_rank": ranked.semantic_rank,
        "lexical_rank": ranked.lexical_rank,
        "fused_score": ranked.fused,
        "usage_boost": ranked.boost,
        "age_factor": ranked.age_factor,
        "score": ranked.score,
        "gate": ranked.reason or "passed",
        "mmr": mmr.get(c.lesson_id),
    }
