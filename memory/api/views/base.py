"""What the writing endpoints share: validation, one transaction, and the Idempotency-Key."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.errors import Invalid
from memory.models import ApiKey
from memory.services.caller import Caller
from memory.services.idempotency import Answer, body_digest, once
from memory.services.keys import caller_of

MAX_KEY = 200
S = TypeVar("S", bound="serializers.BaseSerializer[Any]")


def validated(kind: type[serializers.Serializer[Any]], data: object) -> dict[str, Any]:
    """The request's values, or a ValidationError that names each wrong field."""
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def rendered(kind: type[S], value: Any) -> dict[str, Any]:
    """A value as JSON-ready data, as the answer and its replay both need it."""
    return dict(kind(value).data)


def idempotency_key(request: Request) -> str | None:
    """The header, or None. Raises Invalid if it is empty, too long or not printable ASCII."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not key or len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"use 1 to {MAX_KEY} printable ASCII characters.")
    return key


class ScopedView(APIView):
    """Base of every view behind a key."""

    scopes: ClassVar[dict[str, str]] = {"GET": "read", "POST": "loop", "PATCH": "loop"}

    @property
    def caller(self) -> Caller:
        """The scope of this request; only to be asked for once the permission has been checked."""
        key = self.request.auth
        assert isinstance(key, ApiKey)
        return caller_of(key)


class WriteView(ScopedView):
    """Base of the views that write."""

    def write(self, request: Request, act: Callable[[], Answer]) -> Response:
        """Runs `act`, once for each Idempotency-Key."""
        key = idempotency_key(request)
        if key is None:
            answer = act()
        else:
            digest = body_digest(request.method or "", request.path, request.data)
            answer = once(self.caller.account_id, key, digest, act)
        headers = {"Idempotency-Replayed": "true"} if answer.replayed else {}
        return Response(answer.body, status=answer.status, headers=headers)
