"""The site, which is synchronous, under an asynchronous server: a whole request is one visit to one thread.

Django's own ASGI handler would visit a thread for every middleware and make a new one for every request, which costs a
retrieval as much as its search. Here Django runs as the WSGI application (PEP 3333) that it is at heart, in threads
that last and keep what they know of the database.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from io import BytesIO
from threading import Event
from typing import Any, Final

from starlette.types import Message, Receive, Scope, Send

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[[str, Headers], object]
Wsgi = Callable[[Environ, StartResponse], Iterable[bytes]]

#: Headers that CGI, and so WSGI, names without HTTP_ before them (RFC 3875, 4.1).
_PLAIN: Final = {"content-length": "CONTENT_LENGTH", "content-type": "CONTENT_TYPE"}


class Threaded:
    """A WSGI application as an ASGI application for HTTP, with `threads` requests at work at a time.

    The body is in memory before the application runs, so whoever serves this bounds it. An answer that says that it is
    `streaming`, as Django's do, is sent as it is made, and its making ends when the client has gone; any other is sent
    whole.
    """

    def __init__(self, app: Wsgi, threads: int) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(threads, "request")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _whole(receive)
        if body is None:
            return
        answer = _Answer(asyncio.get_running_loop(), receive, send)
        run = copy_context().run  # what is bound around this, such as a span, is bound in the thread as well
        messages = await answer.loop.run_in_executor(self._pool, run, self._visit, environ(scope, body), answer)
        for message in messages:
            await send(message)

    def _visit(self, request: Environ, answer: "_Answer") -> list[Message]:
        """In the thread: what remains to be sent."""
        content = self._app(request, answer.start)
        try:
            if getattr(content, "streaming", False):
                return answer.stream(content)
            return [answer.head, {"type": "http.response.body", "body": b"".join(content)}]
        finally:
            close = getattr(content, "close", None)
            if close is not None:
                close()


class _Answer:
    """One answer on its way from the thread to the server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, send: Send) -> None:
        self.loop = loop
        self.head: Message = {}
        self._receive = receive
        self._send = send
        self._gone = Event()

    def start(self, status: str, headers: Headers, exc_info: object = None) -> None:
        """WSGI's start_response."""
        pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self.head = {"type": "http.response.start", "status": int(status[:3]), "headers": pairs}

    def stream(self, content: Iterable[bytes]) -> list[Message]:
        """Sends piece by piece, each once the server has taken the one before, until the client has gone."""
        watch = asyncio.run_coroutine_threadsafe(self._watch(), self.loop)
        try:
            self._pass(self.head)
            for piece in content:
                if self._gone.is_set():
                    break
                self._pass({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            watch.cancel()
        return [{"type": "http.response.body", "body": b""}]

    def _pass(self, message: Message) -> None:
        async def sent() -> None:
            await self._send(message)

        asyncio.run_coroutine_threadsafe(sent(), self.loop).result()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()


async def _whole(receive: Receive) -> bytes | None:
    """The body; None if the client went away before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def environ(scope: Scope, body: bytes) -> Environ:
    """The request as PEP 3333 wants it: text is bytes in the guise of Latin-1."""
    root = scope.get("root_path", "")
    server = scope.get("server") or ("localhost", 80)
    request: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": _disguised(root),
        "PATH_INFO": _disguised(scope["path"].removeprefix(root)),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1] or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw, raw_value in scope["headers"]:
        name, value = raw.decode("latin-1").lower(), raw_value.decode("latin-1")
        if "_" in name:  # would pass for the header with a hyphen, of which a proxy may have had its say
            continue
        key = _PLAIN.get(name) or f"HTTP_{name.upper().replace('-', '_')}"
        joint = "; " if name == "cookie" else ","
        request[key] = f"{request[key]}{joint}{value}" if key in request else value
    return request


def _disguised(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
