"""What every request is given, and what the site's answers carry."""

import re
import uuid
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

#: Everything from this server, nothing inline, in nobody's frame (Content Security Policy Level 3). A view may send a
#: stricter one of its own.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Sends POLICY with every answer that brings none."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


#: What a proxy's own request id may look like; any other is replaced, because it goes into the log and the answer.
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)


class RequestIdMiddleware(MiddlewareMixin):
    """Gives each request its id, a proxy's `X-Request-ID` if it has one, and tells it in the answer.

    Stands before django-structlog's middleware, which binds the id to every line that the request logs.
    """

    def process_request(self, request: HttpRequest) -> None:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        chosen = given if REQUEST_ID.fullmatch(given) else str(uuid.uuid4())
        request.META["HTTP_X_REQUEST_ID"] = chosen
        request.request_id = chosen  # type: ignore[attr-defined]  # pages that failed show it

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("X-Request-ID", request.META["HTTP_X_REQUEST_ID"])
        return response
