"""Every error as an RFC 9457 problem document that names the field and the remedy."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.urls import is_valid_path
from django.views import defaults
from rest_framework import exceptions
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
# What PostgreSQL says (SQLSTATE) when the database is well and a rival was in the way: transaction rolled back for a
# deadlock or to keep an order (class 40), a lock that was not to be had, a statement that waited too long.
BUSY = ("40", "55P03", "57014")
BUSY_TYPE = "urn:sonder:busy"
BUSY_SECONDS = 1
# And when it is away for a while: connection lost, out of resources, stopped by an operator. A connection that was
# never made has no state.
AWAY = ("08", "53", "57")
AWAY_SECONDS = 5
MAX_NAME = 80  # characters of a caller's own name for a field that are repeated to it

log = structlog.get_logger(__name__)


def problem(
    status: int,
    detail: str,
    errors: Mapping[str, list[str]] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    kind: tuple[str, str] | None = None,
) -> JsonResponse:
    """The answer: `errors` maps a field to its sentences and is left out where no field is to blame.

    It is JSON whatever the view renders. Its type is `about:blank`, where the status says which kind of problem it is,
    unless `kind` gives a type and its title; the detail says what to do.
    """
    body: dict[str, Any] = {
        "type": kind[0] if kind else "about:blank",
        "title": kind[1] if kind else HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    if errors:
        body["errors"] = dict(errors)
    return JsonResponse(body, status=status, headers=dict(headers or {}), content_type=CONTENT_TYPE)


def shown(name: str) -> str:
    """A caller's own name for something, fit to be repeated: short, and without lone surrogates."""
    short = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
    return short.encode("utf-8", "backslashreplace").decode()


def flatten(detail: object, name: str = "") -> dict[str, list[str]]:
    """DRF's nested error detail as {dotted field: [sentences]}."""
    if isinstance(detail, Mapping):
        parts = [(f"{name}.{shown(str(key))}" if name else shown(str(key)), value) for key, value in detail.items()]
    elif isinstance(detail, list) and any(isinstance(item, Mapping | list) for item in detail):
        parts = [(f"{name}[{i}]", value) for i, value in enumerate(detail) if value]
    else:
        sentences = detail if isinstance(detail, list) else [detail]
        return {name or "body": [str(sentence) for sentence in sentences]}
    flat: dict[str, list[str]] = {}
    for key, value in parts:
        flat.update(flatten(value, key))
    return flat


def problem_handler(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF's exception handler. An unforeseen exception goes on to Django, which logs it and answers 500."""
    answer = _answer_to(exc)
    if answer is not None:
        set_rollback()
    return answer


def _answer_to(exc: Exception) -> JsonResponse | None:
    if isinstance(exc, refusals.SonderError):
        status = next((STATUS[kind] for kind in type(exc).__mro__ if kind in STATUS), HTTPStatus.BAD_REQUEST)
        return problem(status, exc.detail, exc.errors)
    if isinstance(exc, Http404):
        return problem(HTTPStatus.NOT_FOUND, "There is nothing at this address in your account.")
    if isinstance(exc, DjangoPermissionDenied):
        return problem(HTTPStatus.FORBIDDEN, str(exc) or "You may not do this.")
    if isinstance(exc, exceptions.ValidationError):
        fields = flatten(exc.detail)
        return problem(exc.status_code, f"Correct and send again: {', '.join(fields)}.", fields)
    if isinstance(exc, exceptions.APIException):
        return problem(exc.status_code, str(exc.detail), headers=_headers(exc))
    if isinstance(exc, InterfaceError | OperationalError):
        return _passing(exc)
    return None


def _passing(exc: Exception) -> JsonResponse | None:
    """503 for a lost race or an outage, which pass; None for a fault of the statement."""
    state: str | None = getattr(exc.__cause__, "sqlstate", None)
    if state is not None and state.startswith(BUSY):
        log.warning("database_busy", sqlstate=state)
        detail = "Another request was in the way; nothing was saved. Send the same request again."
        wait, kind = BUSY_SECONDS, (BUSY_TYPE, "Busy, try again")
    elif state is None or state.startswith(AWAY):
        log.error("database_unavailable", exc_info=exc)
        detail = "The database does not answer; nothing was saved. Try again in a few seconds."
        wait, kind = AWAY_SECONDS, None
    else:
        return None
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": str(wait)}, kind=kind)


def _headers(exc: exceptions.APIException) -> dict[str, str]:
    """What DRF noted on the exception for the answer's headers."""
    headers = {}
    if challenge := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = str(challenge)
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    return headers


# Django's own handlers. People at a page get a page; everything under /api/ gets a problem document.


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _without_bad_form(request: HttpRequest) -> HttpRequest:
    """The request, without its form if that cannot be read: Django's pages look into it for a token and would fail."""
    try:
        request.POST.keys()
    except (BadRequest, SuspiciousOperation, MultiPartParserError, UnreadablePostError):
        request.POST = QueryDict()
    return request


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _is_api(request):
        return defaults.bad_request(_without_bad_form(request), exception)
    return problem(HTTPStatus.BAD_REQUEST, "The request could not be read.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _is_api(request):
        return defaults.page_not_found(_without_bad_form(request), exception)
    hint = "The API is described at /api/v1/docs/."
    if is_valid_path(f"{request.path_info}/"):
        hint = "Its address ends with a slash."
    detail = f"There is nothing at {shown(request.path)}. {hint}"
    return problem(HTTPStatus.NOT_FOUND, detail)


def server_error(request: HttpRequest) -> HttpResponse:
    if not _is_api(request):
        return defaults.server_error(_without_bad_form(request))
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong here; nothing was saved. The log has the reason."
    )
