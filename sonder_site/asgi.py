"""The ASGI application that uvicorn serves: the site, and beside it MCP's Streamable HTTP, which needs the lifespan."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.routing import Mount, Route

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")


def compose() -> Starlette:
    """A new application, which can be served once."""
    site: Any = get_asgi_application()  # Starlette types the same interface otherwise
    from memory.mcp.http import Endpoint  # the models are ready from here on

    mcp = Endpoint()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield

    routes = [Route("/mcp", mcp), Route("/mcp/", mcp), Mount("/", site)]
    return Starlette(routes=routes, lifespan=lifespan)


application = compose()
