"""`up` says that it is ready when the site answers well, and not when it merely answers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.test import Client, override_settings

from sonder_site.probe import allowed, main, status


@contextmanager
def serving(code: int) -> Iterator[tuple[int, list[str]]]:
    """A server on this machine that answers everything with `code`; its port, and the hosts it was asked for."""
    hosts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(code)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, hosts
        finally:
            server.shutdown()
            thread.join()


def at(port: int) -> str:
    return f"http://127.0.0.1:{port}/healthz"


@pytest.mark.parametrize("code", [200, 301, 400, 404, 500, 503])
def test_the_status_is_what_counts(code: int) -> None:
    with serving(code) as (port, _):
        assert status(at(port), []) == code
        assert main(at(port)) == (code != 200)


def test_no_answer_is_none() -> None:
    with serving(200) as (port, _):
        pass
    assert status(at(port), []) == 0
    assert main(at(port)) == 1


@pytest.mark.parametrize("address", ["https://127.0.0.1/healthz", "127.0.0.1:8000", "file:///etc/passwd", ""])
def test_what_is_no_http_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no http address"):
        status(address, [])


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        (["localhost", "127.0.0.1"], "127.0.0.1"),
        (["*"], "127.0.0.1"),
        ([], "127.0.0.1"),
        (["sonder.example.com"], "sonder.example.com"),
        ([".example.com"], "example.com"),
    ],
)
def test_it_asks_for_a_name_that_the_site_answers_to(hosts: list[str], asked: str) -> None:
    with serving(200) as (port, heard):
        assert status(at(port), hosts) == 200
    assert heard == [asked] == [allowed(hosts)]


def test_healthz_is_not_redirected_to_https() -> None:
    with override_settings(SECURE_SSL_REDIRECT=True):
        assert Client().get("/healthz").status_code == 200
        assert Client().get("/api/v1/docs/").status_code == 301
