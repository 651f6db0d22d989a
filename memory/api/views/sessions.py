"""Sessions, their summaries, and the one live turn that each may have."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.filters import SessionFilter
from memory.api.serializers import StrictCharField, StrictSerializer
from memory.api.views.base import ScopedView, WriteView, rendered, validated
from memory.models import Session, SessionProjectSummary, SessionTurnClaim
from memory.services import session as sessions
from memory.services.idempotency import Answer

ACTIONS = ("claim", "heartbeat", "release")
MAX_TITLE = 200  # characters


class SessionSerializer(serializers.ModelSerializer[Session]):
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = Session
        fields = ("id", "external_id", "project", "title", "summary", "summarized_through", "created_at")


class ProjectSummarySerializer(serializers.ModelSerializer[SessionProjectSummary]):
    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = SessionProjectSummary
        fields = ("project", "summary", "summarized_through")


class TurnSerializer(serializers.ModelSerializer[SessionTurnClaim]):
    class Meta:
        model = SessionTurnClaim
        fields = ("owner", "claimed_at", "expires_at")


class SessionDetailSerializer(SessionSerializer):
    project_summaries = ProjectSummarySerializer(many=True, source="sessionprojectsummary_set")
    turn = serializers.SerializerMethodField(help_text="Who holds the turn now, null if nobody does.")

    class Meta(SessionSerializer.Meta):
        fields = (*SessionSerializer.Meta.fields, "project_summaries", "turn")  # type: ignore[assignment]  # a longer tuple

    @extend_schema_field(TurnSerializer(allow_null=True))
    def get_turn(self, session: Session) -> dict[str, Any] | None:
        held = sessions.live_turn(session.pk)
        return rendered(TurnSerializer, held) if held else None


class RenameSerializer(StrictSerializer):
    title = StrictCharField(allow_blank=True, max_length=MAX_TITLE)


class RenamedSerializer(serializers.ModelSerializer[Session]):
    class Meta:
        model = Session
        fields = ("id", "external_id", "title")


class ActionField(serializers.ChoiceField):
    default_error_messages = {"invalid_choice": f"choose one of {', '.join(ACTIONS)}."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice")
        return str(super().to_internal_value(data))


class TurnActionSerializer(StrictSerializer):
    action = ActionField(choices=ACTIONS)
    token = serializers.UUIDField(required=False, help_text="What the claim answered; for heartbeat and release.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["action"] == "claim" and "token" in attrs:
            raise serializers.ValidationError({"token": ["is given out by a claim. Leave it out."]})
        if attrs["action"] != "claim" and "token" not in attrs:
            raise serializers.ValidationError({"token": ["send the token that the claim answered."]})
        return attrs


class TurnAnswerSerializer(serializers.Serializer[Any]):
    token = serializers.UUIDField(required=False, help_text="Proves who holds the turn; only a claim tells it.")
    owner = serializers.CharField(allow_null=True, help_text="Who holds the turn; null after a release.")
    claimed_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Until then nobody else can claim it.")


FREE = {"owner": None, "claimed_at": None, "expires_at": None}


class SessionsView(ScopedView, ListAPIView[Session]):
    """Sessions of the key's account."""

    serializer_class = SessionSerializer
    filterset_class = SessionFilter

    def get_queryset(self) -> QuerySet[Session]:
        if getattr(self, "swagger_fake_view", False):
            return Session.objects.none()
        return Session.objects.filter(account_id=self.caller.account_id).select_related("project")


class SessionView(WriteView):
    """One session."""

    scopes = {"GET": "read", "PATCH": "loop"}

    @extend_schema(responses=SessionDetailSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """The session, what it meant for each project, and who holds its turn."""
        return Response(SessionDetailSerializer(sessions.find(self.caller.account_id, pk)).data)

    @extend_schema(request=RenameSerializer, responses=RenamedSerializer)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Gives it a title."""
        title = validated(RenameSerializer, request.data)["title"]

        def act() -> Answer:
            # Without the summary: this answer is kept for a replay, and an erasure empties summaries.
            session = sessions.rename(self.caller.account_id, pk, title)
            return Answer(status=200, body=rendered(RenamedSerializer, session))

        return self.write(request, act)


class SessionTurnView(WriteView):
    """The one live turn of a session."""

    scopes = {"POST": "loop"}

    @extend_schema(request=TurnActionSerializer, responses={200: TurnAnswerSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Claims the turn, keeps it or gives it back; 409 says who holds it and until when."""
        fields = validated(TurnActionSerializer, request.data)

        def act() -> Answer:
            return Answer(status=200, body=self._act(pk, **fields))

        return self.write(request, act)

    def _act(self, session: UUID, action: str, token: UUID | None = None) -> dict[str, Any]:
        account = self.caller.account_id
        if token is None:
            held = sessions.claim_turn(account, session, self.caller.actor)
            return {"token": str(held.claim_token), **rendered(TurnSerializer, held)}
        if action == "heartbeat":
            return rendered(TurnSerializer, sessions.heartbeat(account, session, token))
        sessions.release_turn(account, session, token)
        return FREE
