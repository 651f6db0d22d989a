"""Bodies that are too large are refused before anything reads them."""

from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.template.loader import render_to_string
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sonder_site.middleware import POLICY

API: Final = "/api/"


class Bounded:
    """The site, for bodies of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes; 413 for larger ones, whoever sends them.

    Django itself writes a whole body into a file before it looks at its size, and no limit of its own counts files in a
    form. No page here takes a file.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            await _too_large(scope, limit)(scope, receive, send)
            return
        read, begun, over = 0, False, False

        async def counted() -> Message:
            """A body in chunks says nothing of its size, so it ends as if the client had gone away."""
            nonlocal read, over
            message = await receive()
            read += len(message.get("body", b""))
            over = over or read > limit
            return {"type": "http.disconnect"} if over else message

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        await self._app(scope, counted, answer)
        if over and not begun:
            await _too_large(scope, limit)(scope, receive, send)


def _too_large(scope: Scope, limit: int) -> Response:
    """A problem document for programs, a page for people; the rest of the body is not waited for."""
    headers = {"Content-Security-Policy": POLICY, "Connection": "close"}
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    if str(scope["path"]).startswith(API):
        detail = f"The body is over {limit} bytes. Send less text."
        document = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
        return JSONResponse(document, int(status), headers, "application/problem+json")
    return Response(render_to_string("413.html"), int(status), headers, "text/html")
