"""Every error as an RFC 9457 problem document that names the field and the remedy."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from memory import errors as refusals

CONTENT_TYPE = "application/problem+json"
STATUS: dict[type[refusals.SonderError], HTTPStatus] = {
    refusals.Invalid: HTTPStatus.BAD_REQUEST,
    refusals.NotFound: HTTPStatus.NOT_FOUND,
    refusals.Conflict: HTTPStatus.CONFLICT,
    refusals.Forbidden: HTTPStatus.FORBIDDEN,
    refusals.EmbeddingUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def problem(status: int, detail: str, errors: Mapping[str, list[str]] | None = None, title: str = "") -> dict[str, Any]:
    """The document: `errors` maps a field to its sentences and is left out where no field is to blame."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    if errors:
        body["errors"] = dict(errors)
    return body


def flatten(detail: object, name: str = "") -> dict[str, list[str]]:
    """DRF's nested error detail as {dotted field: [sentences]}."""
    if isinstance(detail, Mapping):
        parts = [(f"{name}.{key}" if name else str(key), value) for key, value in detail.items()]
    elif isinstance(detail, list) and any(isinstance(item, Mapping | list) for item in detail):
        parts = [(f"{name}[{i}]", value) for i, value in enumerate(detail) if value]
    else:
        sentences = detail if isinstance(detail, list) else [detail]
        return {name or "body": [str(sentence) for sentence in sentences]}
    flat: dict[str, list[str]] = {}
    for key, value in parts:
        flat.update(flatten(value, key))
    return flat


def _body_of(exc: Exception) -> dict[str, Any] | None:
    if isinstance(exc, refusals.SonderError):
        return problem(STATUS.get(type(exc), HTTPStatus.BAD_REQUEST), exc.detail, exc.errors, exc.title)
    if isinstance(exc, Http404):
        return problem(HTTPStatus.NOT_FOUND, "There is nothing at this address in your account.")
    if isinstance(exc, DjangoPermissionDenied):
        return problem(HTTPStatus.FORBIDDEN, str(exc) or "You may not do this.")
    if isinstance(exc, exceptions.ValidationError):
        fields = flatten(exc.detail)
        names = ", ".join(fields)
        return problem(exc.status_code, f"Correct and send again: {names}.", fields, "The request is not valid")
    if isinstance(exc, exceptions.APIException):
        return problem(exc.status_code, str(exc.detail))
    return None


def problem_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler. An unforeseen exception goes on to Django, which logs it and answers 500."""
    body = _body_of(exc)
    if body is None:
        return None
    headers = {}
    if isinstance(exc, exceptions.APIException):
        if header := getattr(exc, "auth_header", None):
            headers["WWW-Authenticate"] = header
        if wait := getattr(exc, "wait", None):
            headers["Retry-After"] = str(max(1, round(wait)))
    set_rollback()
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _plain(status: HTTPStatus, detail: str) -> HttpResponse:
    return JsonResponse(problem(status, detail), status=status, content_type=CONTENT_TYPE)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain(HTTPStatus.BAD_REQUEST, "The request could not be read.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain(HTTPStatus.NOT_FOUND, f"No page at {request.path}. The API is described at /api/v1/docs/.")


def server_error(request: HttpRequest) -> HttpResponse:
    return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong here; nothing was saved. The log has it.")
