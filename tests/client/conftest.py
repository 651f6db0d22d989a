"""The site behind the client without a port: its requests run in the test's own transaction."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from sonder_client import Retries, Sonder
from tests.conftest import Agent

QUICK = Retries(first_pause=0)


@pytest.fixture
def site(db: None) -> Iterator[httpx.BaseTransport]:
    """The whole site as a transport."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield httpx.WSGITransport(app=WSGIHandler())
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def connect(site: httpx.BaseTransport) -> Iterator[Callable[..., Sonder]]:
    """Makes a client for an agent; `transport` comes between it and the site, if given."""
    made: list[Sonder] = []

    def client(agent: Agent, **options: Any) -> Sonder:
        made.append(Sonder("http://localhost", agent.token, **{"transport": site, "retries": QUICK, **options}))
        return made[-1]

    yield client
    for one in made:
        one.close()
