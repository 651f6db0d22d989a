"""The ASGI application that uvicorn serves: the site, and beside it MCP's Streamable HTTP, which needs the lifespan."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from sonder_site.middleware import REQUEST_ID
from sonder_site.threaded import Threaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")


class Identified:
    """Gives each request of an application its id, as the site's RequestIdMiddleware does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("X-Request-ID", "")
        chosen = given if REQUEST_ID.fullmatch(given) else str(uuid4())

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = chosen
            await send(message)

        with bound_contextvars(request_id=chosen):
            await self._app(scope, receive, answer)


def compose() -> Starlette:
    """A new application, which can be served once."""
    wsgi: Any = get_wsgi_application()  # typed as what it answers, and not as the bytes that this is made of
    from memory.mcp.http import Endpoint  # the models are ready from here on
    from sonder_site.bounded import Bounded

    endpoint = Endpoint()
    mcp = Identified(endpoint)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with endpoint.run():
            yield

    routes = [Route("/mcp", mcp), Route("/mcp/", mcp), Mount("/", Bounded(Threaded(wsgi, settings.REQUEST_THREADS)))]
    return Starlette(routes=routes, lifespan=lifespan)


application = compose()
