"""What the site's answers carry."""

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
