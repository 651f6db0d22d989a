"""Wrong passwords: a few are a person's, many are a guess, and a guess from elsewhere keeps nobody out."""

import os
import socket
from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any

import pytest
import uvicorn
from asgiref.sync import async_to_sync
from axes.models import AccessAttempt
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import AsyncClient, Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sonder_site import login, web
from sonder_site.login import client_address
from sonder_site.settings import AXES_COOLOFF_TIME

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("operator")]

TRIES = 3  # that tests can afford
HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"


@pytest.fixture(autouse=True)
def _few(settings: Any) -> None:
    assert settings.AXES_FAILURE_LIMIT == 10
    settings.AXES_FAILURE_LIMIT = TRIES


def log_in(password: str, *, name: str = "olive", at: str = HERE, page: str = "/login/") -> Any:
    return Client(REMOTE_ADDR=at).post(page, {"username": name, "password": password})


def lock(page: str = "/login/") -> Any:
    """The answer to the guess that is one too many."""
    answers = [log_in("wrong", page=page) for _ in range(TRIES)]
    assert {answer.status_code for answer in answers[:-1]} == {200}
    return answers[-1]


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_too_many_close_the_name_for_that_address_and_say_for_how_long(page: str) -> None:
    refused = lock(page)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= AXES_COOLOFF_TIME.total_seconds()
    text = refused.content.decode()
    assert "is closed for 15 minutes" in text
    assert "olive" not in text
    right = log_in("olive", page=page)
    assert right.status_code == 429
    assert "sessionid" not in right.cookies


def test_neither_the_name_elsewhere_nor_another_name_here_is_closed() -> None:
    lock()
    assert log_in("olive", at=ELSEWHERE).status_code == 302
    assert log_in("wrong", name="nobody").status_code == 200


def test_it_opens_by_itself_and_trying_meanwhile_does_not_prolong_it() -> None:
    lock()
    nearly = timezone.now() - AXES_COOLOFF_TIME + timedelta(seconds=90)
    AccessAttempt.objects.update(attempt_time=nearly)
    again = log_in("olive")
    assert again.status_code == 429
    assert 0 < int(again["Retry-After"]) <= 90
    AccessAttempt.objects.update(attempt_time=nearly - timedelta(seconds=91))
    assert log_in("olive").status_code == 302


def test_a_right_one_forgets_the_wrong_ones_before_it() -> None:
    for _ in range(2):
        for _ in range(TRIES - 1):
            log_in("wrong")
        assert log_in("olive").status_code == 302


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_a_name_of_any_length_is_counted_and_closed(page: str) -> None:
    answers = [log_in("wrong", name="n" * 5000, page=page).status_code for _ in range(TRIES)]
    assert answers == [200] * (TRIES - 1) + [429]


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_few_passwords_are_checked_at_once_and_the_others_wait_their_turn(page: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(login, "PATIENCE", 0.01)
    monkeypatch.setattr(login, "_turns", BoundedSemaphore(1))
    assert log_in("olive", page=page).status_code == 302
    with login._turns:
        busy = log_in("olive", page=page)
        assert (busy.status_code, "sessionid" in busy.cookies) == (503, False)
        assert "has not been looked at" in busy.content.decode()
        assert Client().get(page).status_code == 200
    assert AccessAttempt.objects.count() == 0
    assert log_in("olive", page=page).status_code == 302


def test_an_operator_opens_it_sooner() -> None:
    lock()
    call_command("axes_reset_username", "olive", verbosity=0)
    assert log_in("olive").status_code == 302


def test_what_was_typed_is_kept_without_the_password() -> None:
    log_in("my secret of another site")
    (kept,) = AccessAttempt.objects.values()
    assert "my secret" not in str(kept)


def test_a_page_asks_nothing_of_it(client: Client, operator: Any) -> None:
    client.force_login(operator)
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/review/keys/").status_code == 200
    assert len(queries) > 1
    assert "axes" not in str([query["sql"] for query in queries.captured_queries])


def test_it_is_the_same_under_the_server_that_is_deployed() -> None:
    def ask(password: str) -> Any:
        return async_to_sync(AsyncClient().post)("/login/", {"username": "olive", "password": password})

    answers = [ask("wrong") for _ in range(TRIES)]
    assert [answers[0].status_code, answers[-1].status_code, ask("olive").status_code] == [200, 429, 429]
    assert "is closed for 15 minutes" in answers[-1].content.decode()


class TestTheSession:
    def test_is_a_new_one_after_a_login_and_gone_after_a_logout(self) -> None:
        browser = Client()
        browser.cookies["sessionid"] = "chosen-by-somebody-else-0123456789"
        answer = browser.post("/login/", {"username": "olive", "password": "olive"})
        cookie = answer.cookies["sessionid"]
        assert cookie.value != "chosen-by-somebody-else-0123456789"
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
        browser.post("/logout/")
        stolen = Client()
        stolen.cookies["sessionid"] = cookie.value
        assert stolen.get("/review/").headers["Location"].startswith("/login/")

    def test_of_others_ends_with_a_new_password(self) -> None:
        here, there = Client(), Client()
        for browser in (here, there):
            browser.post("/login/", {"username": "olive", "password": "olive"})
        new = "correct horse 9"
        here.post("/password/", {"old_password": "olive", "new_password1": new, "new_password2": new})
        assert here.get("/review/").status_code == 200
        assert there.get("/review/").status_code == 302


class TestTheAddress:
    @pytest.mark.parametrize(
        ("proxies", "forwarded", "found"),
        [
            (0, "198.51.100.1", HERE),  # without a proxy, the header is whatever the client wrote
            (1, "198.51.100.1", "198.51.100.1"),
            (1, "10.9.8.7, 198.51.100.1", "198.51.100.1"),  # a proxy that appends: what is before it is invented
            (2, "10.9.8.7, 198.51.100.1, 192.0.2.4", "198.51.100.1"),
            (2, "198.51.100.1", HERE),  # it did not come through both
            (1, "", None),
            (1, "unknown", None),
            (1, "::ffff:198.51.100.1", "198.51.100.1"),
            (1, "[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::"),
            (1, "2001:db8:1:2:9:9:9:9", "2001:db8:1:2::"),
        ],
    )
    def test_is_what_the_outermost_trusted_proxy_saw(
        self, settings: Any, proxies: int, forwarded: str, found: str | None
    ) -> None:
        settings.TRUSTED_PROXIES = proxies
        request = RequestFactory(REMOTE_ADDR=HERE).get("/", headers={"X-Forwarded-For": forwarded})
        assert client_address(request) == found

    def test_of_a_socket_without_one_is_none_and_people_log_in_all_the_same(self) -> None:
        assert log_in("wrong", at="").status_code == 200
        assert log_in("olive", at="").status_code == 302


@pytest.mark.parametrize("place", ["Dockerfile", "docker-compose.yml", "docs/deployment.md"])
def test_no_server_believes_by_a_rule_of_its_own_whom_an_address_is_of(place: str) -> None:
    """uvicorn takes X-Forwarded-For from whatever connects from its own machine, unless it is told not to."""
    lines = (settings.BASE_DIR / place).read_text().splitlines()
    serving = [line for line in lines if "uvicorn" in line and "sonder_site.asgi" in line]
    assert serving
    assert all("--no-proxy-headers" in line for line in serving)


def test_neither_does_that_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        served.append(server.config.proxy_headers)
        sockets[0].close()

    served: list[bool] = []
    monkeypatch.setattr(uvicorn.Server, "run", run)
    with socket.socket() as listener:
        web.main(os.dup(listener.fileno()))
    assert served == [False]
