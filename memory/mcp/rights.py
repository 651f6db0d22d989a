"""What the site rules for its HTTP API, applied to calls that come another way.

The rules are the classes of the REST framework's settings: a key is found, its scopes are checked, its calls are
counted and a refusal is worded by the same code, and a key has one allowance for both ways in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.settings import api_settings

from memory.models import ApiKey

_SITE: Any = api_settings  # whose stubs take every setting for a text


@dataclass(frozen=True, kw_only=True)
class _Request:
    """As much of a request as the rules read."""

    auth: ApiKey | None = None
    user: None = None
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _View:
    """As much of a view as the rules read."""

    scopes: Mapping[str, str]  # that a key needs, by method


def authenticate(headers: Mapping[str, str]) -> ApiKey:
    """The live key of an Authorization header. Raises NotAuthenticated or AuthenticationFailed, with the challenge."""
    request = _Request(headers=headers)
    (way,) = (kind() for kind in _SITE.DEFAULT_AUTHENTICATION_CLASSES)
    try:
        key = _found(way.authenticate(request))
    except exceptions.APIException as error:
        vars(error)["auth_header"] = way.authenticate_header(request)  # where DRF's own views note it
        raise
    return key


def _found(pair: tuple[object, ApiKey] | None) -> ApiKey:
    if pair is None:
        raise exceptions.NotAuthenticated("Send an API key as 'Authorization: Bearer <key>'.")
    return pair[1]


def admit(key: ApiKey, scope: str) -> None:
    """Counts a call that needs a scope. Raises PermissionDenied without it, and Throttled beyond the allowance."""
    request = _Request(auth=key)
    view = _View(scopes={request.method: scope})
    for permission in _SITE.DEFAULT_PERMISSION_CLASSES:
        if not permission().has_permission(request, view):
            raise exceptions.PermissionDenied
    for kind in _SITE.DEFAULT_THROTTLE_CLASSES:
        throttle = kind()
        if not throttle.allow_request(request, view):
            raise exceptions.Throttled(throttle.wait())


def refusal(error: Exception) -> HttpResponse | None:
    """The problem document (RFC 9457) that the HTTP API answers to the same error; None for a fault of the product."""
    answer: HttpResponse | None = _SITE.EXCEPTION_HANDLER(error, {})
    return answer
