"""Erasure: DELETE on what an account may have erased."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views.base import WriteView
from memory.errors import Invalid
from memory.services.erasure import erase
from memory.services.idempotency import Answer

DRY_RUN = OpenApiParameter(
    "dry_run", bool, OpenApiParameter.QUERY, description="true only counts what would go, and changes nothing."
)


class ErasedSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    subject = serializers.UUIDField()
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Rows by table.")
    dry_run = serializers.BooleanField()


class Erasable(WriteView):
    """Adds DELETE to a view of one record; the key needs the scope `admin`."""

    kind: ClassVar[str]
    parameters: ClassVar[dict[str, tuple[str, ...]]] = {"DELETE": ("dry_run",)}

    @extend_schema(request=None, responses={200: ErasedSerializer}, parameters=[DRY_RUN])
    def delete(self, request: Request, pk: UUID) -> Response:
        """Erases the record and every copy derived from it. There is no way back."""
        asked = request.query_params.get("dry_run", "false")
        if asked not in ("true", "false"):
            raise Invalid.field("dry_run", "use true or false.")

        def act() -> Answer:
            erased = erase(
                self.kind,
                pk,
                account_id=self.caller.account_id,
                actor=self.caller.actor,
                dry_run=asked == "true",
            )
            return Answer(status=200, body=dict(ErasedSerializer(erased).data))

        return self.write(request, act)


class FactView(Erasable):
    """One fact."""

    scopes = {"DELETE": "admin"}
    kind = "fact"


class ProjectView(Erasable):
    """One project."""

    scopes = {"DELETE": "admin"}
    kind = "project"
