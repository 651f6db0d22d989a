"""Bearer keys. The key is the scope, and the judge."""

import structlog
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memory.models import ApiKey
from memory.services.keys import find_key


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer sonder_...`; `request.auth` is the ApiKey."""

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != "bearer":
            raise AuthenticationFailed("Send the key as 'Authorization: Bearer <key>'.")
        key = find_key(token.strip())
        if key is None:
            raise AuthenticationFailed("The API key is unknown, revoked or expired. Ask an operator for a new one.")
        # Every line that this request logs says whose it is: ids, and never a key or a text.
        structlog.contextvars.bind_contextvars(account=str(key.account_id), key=key.prefix)
        return None, key

    def authenticate_header(self, request: Request) -> str:
        """The challenge of RFC 6750, section 3."""
        tried = bool(request.headers.get("Authorization"))
        return 'Bearer realm="Sonder"' + (', error="invalid_token"' if tried else "")


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI document names the scheme."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
