"""A megabyte is a mistake: every way in says so, and nothing is changed by it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.test import Client
from starlette.types import Receive, Scope, Send

from memory.models import Account, Lesson
from sonder_site.asgi import compose
from sonder_site.bounded import Bounded
from tests.http.calls import nothing_changes, refused
from tests.http.permission_tables import API, PAGES
from tests.http.permission_world import SCOPES, World, build
from tests.http.routes import ROUTES, named

MUCH = "x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE


@pytest.fixture
def world(account: Account, rival_account: Account, lesson: Callable[..., Lesson], settings: Any) -> World:
    settings.SONDER_LESSON_SCOPE = "account"
    return build(account, rival_account, lesson)


@pytest.mark.django_db
def test_every_operation_with_a_body_refuses_it_with_413(world: World) -> None:
    client, more = world.key(*SCOPES).client, {"depends_on": world.ids["depends_on"]}
    written = [(case, operation) for case, operation in API.items() if case[0] in ("POST", "PATCH")]
    assert len(written) > 12
    with nothing_changes():
        for (method, name), operation in written:
            body = json.dumps({**world.filled(operation.body), "note": MUCH})
            at = named(ROUTES[name], {"pk": world.ids[operation.of], **more})
            refused(client.generic(method, at, body, content_type="application/json"), 413)


@pytest.mark.django_db
def test_every_form_refuses_it_with_400(world: World) -> None:
    browser = world.browser("operator")
    browser.handler.enforce_csrf_checks = True  # who looks for the token reads the form
    browser.get(world.page("settings"))
    with nothing_changes():
        for (method, name), page in PAGES.items():
            if method == "POST":
                body = "&".join(f"{key}={value}" for key, value in world.filled(page.form).items()) + f"&note={MUCH}"
                sent = browser.post(world.page(name), body, content_type="application/x-www-form-urlencoded")
                assert sent.status_code == 400, name


@pytest.mark.django_db
@pytest.mark.parametrize(("lessons", "status"), [(2_000, 422), (2_501, 400)])
def test_a_form_about_a_large_cluster_arrives_and_one_of_no_page_does_not(
    world: World, lessons: int, status: int
) -> None:
    fields = {f"{kind}_{n}": "" for n in range(lessons) for kind in ("row", "merge", "reason", "note")}
    with nothing_changes():
        assert world.browser("operator").post(world.page("prune_apply"), fields).status_code == status


FORM = "application/x-www-form-urlencoded"
UNREADABLE = {
    "too many fields": ("a=&" * (settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1), FORM),
    "another charset": ("a=b", f"{FORM}; charset=latin-1"),
    "no boundary": ("a", "multipart/form-data"),
    "too many files": (
        '--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n\r\n' * 101 + "--x--\r\n",
        "multipart/form-data; boundary=x",
    ),
    "too many parts": (
        '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * (settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 2)
        + "--x--\r\n",
        "multipart/form-data; boundary=x",
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("why", UNREADABLE)
def test_a_form_that_cannot_be_read_is_refused_with_a_page_wherever_it_is_sent(why: str) -> None:
    """Django looks into the form for a token before it shows any page, that of the refusal too."""
    body, kind = UNREADABLE[why]
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.get("/login/")
    for path, status in (("/login/", 400), ("/admin/login/", 400), ("/review/decide/", 400), ("/nowhere/", 404)):
        answer = browser.generic("POST", path, body, content_type=kind)
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8"), path


def send(path: str, **sent: Any) -> httpx.Response:
    """A request to the application as it is served, without a port."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=compose())
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.post(path, **sent)

    return asyncio.run(ask())


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(20):
        yield MUCH[: len(MUCH) // 10].encode()


class TestAtTheDoor:
    @pytest.mark.parametrize("path", ["/login/", "/review/decide/", "/admin/login/", "/nowhere"])
    def test_a_file_in_a_form_is_refused_before_it_is_read(self, path: str) -> None:
        answer = send(path, files={"file": ("big.bin", MUCH.encode())})
        assert answer.status_code == 413
        assert "Nothing was saved" in answer.text
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]

    def test_a_program_gets_a_problem_document(self) -> None:
        document = refused(send("/api/v1/interactions/", content=MUCH + "x"), 413)
        assert "1000000 bytes" in document["detail"]

    @pytest.mark.parametrize("path", ["/login/", "/api/v1/interactions/"])
    def test_a_body_in_chunks_is_cut_off_where_it_is_too_long(self, path: str) -> None:
        assert send(path, content=_chunks()).status_code == 413

    def test_what_is_not_too_long_arrives_whole(self) -> None:
        heard = bytearray()

        async def listen(scope: Scope, receive: Receive, send: Send) -> None:
            more = True
            while more:
                message = await receive()
                heard.extend(message.get("body", b""))
                more = message.get("more_body", False)
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        async def ask() -> int:
            transport = httpx.ASGITransport(app=Bounded(listen))
            async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
                return (await client.post("/", content=MUCH)).status_code

        assert asyncio.run(ask()) == 204
        assert len(heard) == len(MUCH)
