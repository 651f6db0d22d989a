"""Rates by key: 429 says when to come back, and one key's rate is no other's."""

import socket
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.core.cache import cache
from django.test import override_settings
from rest_framework.throttling import SimpleRateThrottle

from memory.api.throttles import KeyThrottle
from memory.models import ApiKey
from tests.conftest import Agent
from tests.http.calls import INTERACTIONS, LESSONS, RETRIEVE, nothing_changes, refused

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_counters() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The throttle's time in seconds, which stands still."""
    now = [1000.0]
    monkeypatch.setattr(KeyThrottle, "timer", staticmethod(lambda: now[0]))
    return now


def work(agent: Agent) -> Any:
    return agent.client.post(INTERACTIONS, {"task": "x", "retrieve": False}, format="json")


class TestARate:
    @pytest.fixture(autouse=True)
    def low(self) -> Iterator[None]:
        with override_settings(SONDER_THROTTLE_LOOP="3/min", SONDER_THROTTLE_READ="2/min"):
            yield

    def test_is_kept_and_the_refusal_says_when_to_come_back(self, agent: Agent, clock: list[float]) -> None:
        for seconds in (0, 10.7, 0):
            clock[0] += seconds
            assert work(agent).status_code == 201
        with nothing_changes():
            response = work(agent)
            assert "throttled" in refused(response, 429)["detail"]
        assert response.headers["Retry-After"] == "50"  # the oldest of the three is forgotten in 49.3 seconds
        clock[0] += 49
        assert work(agent).headers["Retry-After"] == "1"
        clock[0] += 1
        assert work(agent).status_code == 201

    def test_of_the_loop_is_not_that_of_reading(self, agent: Agent, clock: list[float]) -> None:
        for _ in range(2):
            assert agent.client.get(INTERACTIONS).status_code == 200
        refused(agent.client.get(LESSONS), 429)
        for _ in range(3):
            assert agent.client.post(RETRIEVE, {"task": "x"}, format="json").status_code == 200
        refused(work(agent), 429)

    def test_is_each_keys_own(self, agent: Agent, machine: Agent, rival: Agent, clock: list[float]) -> None:
        for _ in range(3):
            work(agent)
        refused(work(agent), 429)
        assert (work(machine).status_code, work(rival).status_code) == (201, 201)

    def test_counts_refused_requests_too(self, agent: Agent, clock: list[float]) -> None:
        for _ in range(3):
            assert agent.client.post(INTERACTIONS, {}, format="json").status_code == 400
        refused(work(agent), 429)

    def test_does_not_count_requests_of_a_revoked_key(self, agent: Agent, clock: list[float]) -> None:
        ApiKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
        for _ in range(5):
            refused(work(agent), 401)

    def test_is_not_asked_of_service_endpoints(self, agent: Agent, clock: list[float]) -> None:
        for _ in range(5):
            assert agent.client.get("/healthz").status_code == 200


def test_a_rate_that_was_lowered_still_says_when_to_come_back(agent: Agent, clock: list[float]) -> None:
    with override_settings(SONDER_THROTTLE_LOOP="9/min"):
        for _ in range(9):
            work(agent)
    with override_settings(SONDER_THROTTLE_LOOP="2/min"):
        response = work(agent)
    refused(response, 429)
    assert response.headers["Retry-After"] == "60"


def test_the_default_rates_let_an_agent_work(agent: Agent) -> None:
    with override_settings(SONDER_THROTTLE_LOOP="600/min", SONDER_THROTTLE_READ="300/min"):
        for _ in range(5):
            assert work(agent).status_code == 201


def counters_at(address: str, **options: float) -> dict[str, Any]:
    backend = "django.core.cache.backends.redis.RedisCache"
    return {"default": {"BACKEND": backend, "LOCATION": f"redis://{address}", "OPTIONS": options}}


class TestWithoutItsCounters:
    """A Redis that is down or hangs must not cost an outcome."""

    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(KeyThrottle, "paused_until", 0.0)

    def test_the_store_goes_on_working(self, agent: Agent) -> None:
        with override_settings(SONDER_THROTTLE_LOOP="1/min", CACHES=counters_at("127.0.0.1:1")):
            assert [work(agent).status_code for _ in range(3)] == [201, 201, 201]

    def test_counters_that_hang_are_waited_for_once_and_then_left_alone_for_a_while(self, agent: Agent) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "{}:{}".format(*silent.getsockname())
            caches = counters_at(address, socket_timeout=0.5, socket_connect_timeout=0.5)
            with override_settings(SONDER_THROTTLE_LOOP="1/min", CACHES=caches):
                assert work(agent).status_code == 201
                assert KeyThrottle.paused_until > time.monotonic()
                with mock.patch.object(SimpleRateThrottle, "allow_request", side_effect=AssertionError("asked")):
                    assert work(agent).status_code == 201

    def test_they_are_asked_again_after_the_pause(self, agent: Agent, clock: list[float]) -> None:
        KeyThrottle.paused_until = time.monotonic() - 1
        with override_settings(SONDER_THROTTLE_LOOP="3/min"):
            for _ in range(3):
                work(agent)
            refused(work(agent), 429)
