"""MCP over Streamable HTTP, with the API's bearer keys: one request, one answer, and no session in between."""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlsplit

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from rest_framework import exceptions

from memory.mcp.rights import authenticate, refusal
from memory.mcp.server import Context, build
from memory.models import ApiKey

KEY: Final = "sonder.key"  # where the connection's scope holds the key that was found

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Misdirected(exceptions.APIException):
    """The request was meant for another server."""

    status_code = 421
    default_detail = "This server does not answer to the name in the Host header. ALLOWED_HOSTS says to which it does."
    default_code = "misdirected"


class Endpoint:
    """The ASGI application at /mcp. It serves within `run()`, and one instance runs once."""

    def __init__(self) -> None:
        self._manager = StreamableHTTPSessionManager(
            build(_key_of),
            json_response=True,
            stateless=True,
            max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with ThreadSensitiveContext():  # a thread for this request alone, as Django's own handler does
            try:
                answer = await sync_to_async(_admitted)(scope)
                if answer is None:
                    await self._manager.handle_request(scope, receive, send)
                else:
                    await _send(answer, send)
            finally:
                await sync_to_async(close_old_connections)()


def _key_of(context: Context) -> ApiKey:
    assert context.request is not None
    key = context.request.scope[KEY]
    assert isinstance(key, ApiKey)
    return key


def _admitted(scope: Scope) -> HttpResponse | None:
    """Puts the key into the scope; or the answer to who may not come in."""
    request = ASGIRequest(dict(scope), BytesIO())
    try:
        _check_address(request)
        if request.method != "POST":
            raise exceptions.MethodNotAllowed(str(request.method))
        scope[KEY] = authenticate(request.headers)
    except exceptions.APIException as error:
        answer = refusal(error)
        assert answer is not None, "the site has words for each of its refusals"
        if isinstance(error, exceptions.MethodNotAllowed):
            answer.headers["Allow"] = "POST"
        return answer
    return None


def _check_address(request: HttpRequest) -> None:
    """Refuses what a web page of somebody else could send, also one that gave its own name this server's address.

    The names and origins are the site's own (ALLOWED_HOSTS, CSRF_TRUSTED_ORIGINS), which know wildcards.
    """
    try:
        host = request.get_host()
    except DisallowedHost:
        raise Misdirected from None
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != host and origin not in settings.CSRF_TRUSTED_ORIGINS:
        raise exceptions.PermissionDenied("Pages of another origin may not call. CSRF_TRUSTED_ORIGINS names who may.")
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise exceptions.PermissionDenied("Use the https address: a key must not travel in the open.")


async def _send(answer: HttpResponse, send: Send) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    headers.append((b"content-length", str(len(answer.content)).encode()))
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
