"""The site runs in threads under an asynchronous server, and neither a byte nor the end of an answer is lost."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from starlette.types import Message, Scope

from sonder_site.threaded import Threaded, environ

SCOPE: Scope = {
    "type": "http",
    "method": "POST",
    "path": "/käse/",
    "root_path": "",
    "query_string": b"q=%C3%A4",
    "http_version": "1.1",
    "scheme": "https",
    "server": ("example.org", 443),
    "client": ("203.0.113.7", 50000),
    "headers": [
        (b"Content-Type", b"text/plain"),
        (b"content-length", b"2"),
        (b"x-forwarded-for", b"198.51.100.1"),
        (b"x_forwarded_for", b"forged"),
        (b"accept", b"a"),
        (b"accept", b"b"),
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
    ],
}


class Streamed:
    """An answer as Django streams it."""

    streaming = True

    def __init__(self, pieces: Iterable[bytes], closed: Callable[[], None]) -> None:
        self._pieces, self.close = pieces, closed

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


async def exchange(
    app: Any, received: list[Message], on_send: Callable[[Message], None] | None = None
) -> list[Message]:
    """What the application sent for these messages of the client, which then says nothing more."""
    sent: list[Message] = []
    waiting = asyncio.Queue[Message]()
    for message in received:
        waiting.put_nowait(message)

    async def send(message: Message) -> None:
        sent.append(message)
        if on_send is not None:
            on_send(message)
        if message.get("body") == b"go":
            waiting.put_nowait({"type": "http.disconnect"})

    await Threaded(app, 2)(SCOPE, waiting.get, send)
    return sent


def body(*parts: bytes) -> list[Message]:
    return [{"type": "http.request", "body": part, "more_body": i + 1 < len(parts)} for i, part in enumerate(parts)]


def test_the_request_arrives_whole_and_as_django_reads_it() -> None:
    request = environ(SCOPE, b"ab")
    assert request["wsgi.input"].read() == b"ab"
    read = WSGIRequest(request)
    assert (read.path, read.GET["q"], read.scheme) == ("/käse/", "ä", "https")
    assert (read.META["SERVER_NAME"], read.META["SERVER_PORT"]) == ("example.org", "443")
    assert (read.headers["Accept"], read.COOKIES) == ("a,b", {"a": "1", "b": "2"})
    assert (read.META["CONTENT_TYPE"], read.META["CONTENT_LENGTH"]) == ("text/plain", "2")
    assert read.META["REMOTE_ADDR"] == "203.0.113.7"


def test_a_header_with_an_underscore_does_not_pass_for_one_with_a_hyphen() -> None:
    assert environ(SCOPE, b"")["HTTP_X_FORWARDED_FOR"] == "198.51.100.1"


def test_an_answer_is_sent_whole_from_one_visit_to_one_thread() -> None:
    bound = ContextVar("bound", default="")
    threads = []

    def app(request: dict[str, Any], start: Any) -> list[bytes]:
        threads.append(threading.current_thread().name)
        start("418 I'm a teapot", [("X-Bound", bound.get())])
        return [request["wsgi.input"].read(), b"!"]

    async def asked() -> list[Message]:
        bound.set("here")
        return await exchange(app, body(b"a", b"", b"b"))

    head, content = asyncio.run(asked())
    assert (head["status"], head["headers"]) == (418, [(b"x-bound", b"here")])
    assert (content["body"], content.get("more_body", False)) == (b"ab!", False)
    assert threads[0].startswith("request")


def test_a_streamed_answer_is_sent_as_it_is_made() -> None:
    made: list[bytes] = []
    seen: list[int] = []  # how many were made when each was sent

    def pieces() -> Iterator[bytes]:
        for piece in (b"1", b"2", b"3"):
            made.append(piece)
            yield piece

    closed = threading.Event()

    def app(_: dict[str, Any], start: Any) -> Streamed:
        start("200 OK", [])
        return Streamed(pieces(), closed.set)

    sent = asyncio.run(exchange(app, body(b""), lambda m: seen.append(len(made)) if m.get("body") else None))
    assert [m.get("body") for m in sent] == [None, b"1", b"2", b"3", b""]
    assert seen == [1, 2, 3]
    assert closed.is_set()
    assert not sent[-1].get("more_body", False)


def test_a_streamed_answer_ends_and_is_closed_when_the_client_has_gone() -> None:
    closed = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            yield b"go"

    def app(_: dict[str, Any], start: Any) -> Streamed:
        start("200 OK", [])
        return Streamed(endless(), closed.set)

    asyncio.run(asyncio.wait_for(exchange(app, body(b"")), 60))
    assert closed.is_set()


def test_a_request_that_never_arrived_is_not_answered() -> None:
    def app(_: dict[str, Any], __: Any) -> list[bytes]:
        pytest.fail("half a request was run")

    assert asyncio.run(exchange(app, [*body(b"a", b"b")[:1], {"type": "http.disconnect"}])) == []


def test_what_the_application_raises_reaches_the_server_after_the_answer_is_closed() -> None:
    closed = threading.Event()

    def broken() -> Iterator[bytes]:
        yield b"1"
        raise RuntimeError("the disk is on fire")

    def app(_: dict[str, Any], start: Any) -> Streamed:
        start("200 OK", [])
        return Streamed(broken(), closed.set)

    with pytest.raises(RuntimeError, match="on fire"):
        asyncio.run(exchange(app, body(b"")))
    assert closed.is_set()
