"""What the endpoints share: rights, parameters, validation, one transaction, and the Idempotency-Key."""

import json
from collections.abc import Callable, Hashable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.db import transaction
from django.views.decorators.common import no_append_slash
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from memory.api.parameters import check_parameters
from memory.errors import Invalid
from memory.models import ApiKey
from memory.services.caller import Caller
from memory.services.idempotency import Answer, body_digest, once
from memory.services.keys import caller_of

if TYPE_CHECKING:
    from rest_framework.views import AsView, GenericView

MAX_KEY = 200


def validated(kind: type[serializers.Serializer[Any]], data: object) -> dict[str, Any]:
    """The request's values, or a ValidationError that names each wrong field."""
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


@cache
def _writer(kind: Any) -> Any:
    """One serializer of a kind for all answers: making its fields anew takes longer than using them."""
    return kind()


def rendered(kind: type[serializers.BaseSerializer[Any]], value: Any) -> dict[str, Any]:
    """A value as plain JSON, as the answer and its replay both need it: a foreign key's UUID becomes its text."""
    return dict(json.loads(json.dumps(_writer(cast(Hashable, kind)).to_representation(value), cls=JSONEncoder)))


def idempotency_key(request: Request) -> str | None:
    """The header, or None. Raises Invalid if it is empty, too long or not printable ASCII."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not key or len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"use 1 to {MAX_KEY} printable ASCII characters.")
    return key


class LengthRequired(APIException):
    """A body in chunks would be read as no body at all."""

    status_code = 411
    default_detail = "Send the body with a Content-Length, not in chunks."
    default_code = "length_required"


class JSONOnly(DefaultContentNegotiation):
    """Answers are JSON whatever Accept says (RFC 9110, 12.5.1): an agent's odd header is no reason to refuse it."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = renderers[0]
        return renderer, renderer.media_type


class ScopedView(APIView):
    """Base of every view behind a key."""

    scopes: ClassVar[dict[str, str]] = {"GET": "read"}  # of the key, by method
    content_negotiation_class = JSONOnly
    # No OPTIONS: the OpenAPI document describes each operation.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    @classmethod
    def as_view(cls, **initkwargs: Any) -> "AsView[GenericView]":
        """Without Django's redirect to the address with a slash, which would turn a POST into a GET."""
        return no_append_slash(super().as_view(**initkwargs))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who may call, then what the call may carry."""
        super().initial(request, *args, **kwargs)
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        check_parameters(request, self)
        if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
            raise LengthRequired

    @property
    def caller(self) -> Caller:
        """The scope of this request; only to be asked for once the permission has been checked."""
        key = self.request.auth
        assert isinstance(key, ApiKey)
        return caller_of(key)


class WriteView(ScopedView):
    """Base of the views that write."""

    def write(self, request: Request, act: Callable[[], Answer]) -> Response:
        """Runs `act` and renders its answer in one transaction, once for each Idempotency-Key.

        The same key from another judge is another request: a machine must not be told that what it reports was
        recorded because a caller reported it.
        """
        key = idempotency_key(request)
        if key is None:
            with transaction.atomic():
                answer = act()
        else:
            digest = body_digest(request.method or "", request.get_full_path(), [self.caller.source, request.data])
            answer = once(self.caller.account_id, key, digest, act)
        headers = {"Idempotency-Replayed": "true"} if answer.replayed else {}
        return Response(answer.body, status=answer.status, headers=headers)
