"""What no route takes from anybody: a form of somebody else's, a way out of the site, and a key in the open."""

import html
import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import transaction
from django.template.backends.django import Template
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from memory.models import Account, Lesson
from sonder_site import settings as site
from tests.http.calls import INTERACTIONS, MISSING, nothing_changes
from tests.http.permission_tables import PAGES
from tests.http.permission_world import SCOPES, World, build
from tests.http.routes import ROUTES

pytestmark = pytest.mark.django_db

AWAY: Final = (
    "//evil.example/",
    "https://evil.example/",
    "http:evil.example/",
    "/\\evil.example/",
    "\\\\evil.example/",
    "/\t/evil.example/",
    "///evil.example/",
    "https:///evil.example/",
    "https://testserver@evil.example/",
    "https://testserver.evil.example/",
    "javascript:alert(1)",
    "data:text/html,evil.example",
)
#: Whatever stands for a part of an address.
PARTS: Final = {"uuid": MISSING, "path": MISSING, "int": "1", "id": "1"}


@pytest.fixture
def world(account: Account, rival_account: Account, lesson: Callable[..., Lesson], settings: Any) -> World:
    settings.SONDER_LESSON_SCOPE = "account"
    return build(account, rival_account, lesson)


def addresses() -> list[str]:
    """One of each route that is not the API's, which knows no login that a page could abuse."""
    wanted = [route.pattern for route in ROUTES.values() if not route.pattern.startswith("api/")]
    plain = [pattern for pattern in wanted if "(?P" not in pattern]
    assert len(wanted) - len(plain) == 2, "the lists of an app, and whatever else is under admin/"
    filled = [re.sub(r"<(?:(\w+):)?\w+>", lambda part: PARTS.get(part[1] or "id", "x"), each) for each in plain]
    return [f"/{each}" for each in [*filled, "admin/memory/", "admin/nothing/"]]


class TestAForm:
    def test_without_a_token_is_refused_on_every_route(self, operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Template, "render", lambda *_, **__: "")  # four hundred times the same page
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(operator)
        with nothing_changes():
            got = {address: browser.post(address).status_code for address in addresses()}
        assert len(got) > 400
        assert {address: status for address, status in got.items() if status != 403} == {}

    def test_that_is_refused_says_what_to_do(self, operator: Any) -> None:
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(operator)
        assert "The form is out of date" in browser.post(reverse("review:decide")).content.decode()

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://testserver.evil.example", "null"])
    def test_of_another_site_is_refused_with_a_token_too(self, operator: Any, origin: str) -> None:
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(operator)
        browser.get(reverse("review:settings"))
        sent = {"csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
        assert browser.post(reverse("review:unskip"), sent, headers={"Origin": "http://testserver"}).status_code == 302
        assert browser.post(reverse("review:unskip"), sent, headers={"Origin": origin}).status_code == 403


def leads_away(location: str) -> bool:
    """Whether a browser would leave the site for it: browsers take a backslash for a slash and skip tabs."""
    plain = re.sub(r"[\t\r\n]", "", location).replace("\\", "/").strip()
    parts = urlsplit(plain)
    return plain.startswith("//") or (bool(parts.scheme or parts.netloc) and parts.netloc != "testserver")


class TestAnAddressToGoOnWith:
    @pytest.mark.parametrize("name", ["login", "admin:login"])
    @pytest.mark.parametrize("onward", AWAY)
    def test_leads_nowhere_else_after_a_login(self, operator: Any, name: str, onward: str) -> None:
        sent = {"username": "olive", "password": "olive", "next": onward}
        for query in ({}, {"next": onward}):
            answer = Client().post(reverse(name, query=query), sent)
            assert answer.status_code == 302
            assert not leads_away(answer["Location"])

    @pytest.mark.parametrize("onward", AWAY)
    def test_of_a_form_that_met_a_login_is_one_of_this_site(self, db: None, onward: str) -> None:
        sent_to = Client().post(reverse("review:decide"), headers={"Referer": onward})["Location"]
        (onward,) = parse_qs(urlsplit(sent_to).query)["next"]
        assert onward == reverse("review:decide")

    @pytest.mark.parametrize("onward", ["//evil.example/", "/\\evil.example/", "javascript:alert(1)"])
    def test_leads_nowhere_else_after_any_form_and_from_any_page(self, world: World, onward: str) -> None:
        browser, seen = world.browser("operator"), 0
        wanted = {case: page for case, page in PAGES.items() if case[0] == "POST" or onward == AWAY[0]}
        for (method, name), page in wanted.items():
            sent = world.filled(page.form) | {"next": onward}
            with transaction.atomic():
                answer = getattr(browser, method.lower())(world.page(name), sent)
                transaction.set_rollback(True)
            assert not leads_away(answer.headers.get("Location", "")), name
            if not answer.streaming and "text/html" in answer.headers["Content-Type"]:
                links = re.findall(r'(?:href|action|src|hx-\w+)="([^"]*)"', html.unescape(answer.content.decode()))
                assert [link for link in links if onward in link and leads_away(link)] == [], name
                seen += 1
        assert seen > (40 if onward == AWAY[0] else 4)


class TestAKey:
    @pytest.fixture
    def console(self, caplog: pytest.LogCaptureFixture) -> Iterator[io.StringIO]:
        """What the site writes to its log, as its handler words it, down to the last detail."""
        stream, root = io.StringIO(), logging.getLogger()
        handler = logging.StreamHandler(stream)
        formatter: Any = vars(site)["LOGGING"]["formatters"]["line"]
        handler.setFormatter(formatter["()"](**{key: value for key, value in formatter.items() if key != "()"}))
        root.addHandler(handler)
        with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "django_structlog.middlewares.request"):
            yield stream
        root.removeHandler(handler)

    def test_is_in_no_line_of_the_log_wherever_somebody_put_it(self, world: World, console: io.StringIO) -> None:
        made = world.key(*SCOPES)
        token, secret = made.token, made.token.rpartition("_")[2]
        browser = Client(raise_request_exception=False)
        for address in (INTERACTIONS, f"{INTERACTIONS}{token}/", f"/review/{token}/", "/login/", f"/admin/{token}/"):
            for client in (made.client, APIClient(headers={"Authorization": f"Token {token}"}), browser):
                client.get(address, {"key": token})
                client.post(f"{address}?key={token}", {"task": "sort", "key": token})
        browser.post("/login/", {"username": token, "password": token, "next": f"/review/?key={token}"})
        lines = console.getvalue()
        assert lines.count("request_finished") > 30
        assert secret not in lines
        assert f"sonder_{made.key.prefix}_" in lines

    def test_opens_no_page_of_the_review_or_the_admin(self, world: World) -> None:
        browser = Client(headers={"Authorization": f"Bearer {world.key(*SCOPES).token}"})
        for address in ("/review/", "/review/audit/", "/admin/", "/password/"):
            assert browser.get(address).status_code == 302
            assert browser.get(address)["Location"].startswith(("/login/", "/admin/login/"))
