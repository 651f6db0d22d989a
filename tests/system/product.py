"""The whole product on a Redis of its own, and agents who work with it over HTTP."""

import re
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from tests.system.killing import Story, story
from tests.system.started import Redis, Up, up
from tests.system.stores import PATIENCE_SECONDS, copy, new_store, wait_until

KEY = re.compile(r"key where people judge +(\S+)")
RETRY_SECONDS = 0.1  # sooner than the answer asks for: the more often, the likelier is a doubled request


class Client:
    """An API client with a key, who sends a refused request again under the same Idempotency-Key."""

    def __init__(self, http: httpx.Client, key: str) -> None:
        self._http, self._key = http, {"Authorization": f"Bearer {key}"}
        self.refused, self.replayed, self.slowest = 0, 0, 0.0

    def call(self, method: str, path: str, body: dict[str, str] | None = None, key: str = "") -> dict[str, Any]:
        """The answer's body; after 503 the request is sent again, and any other refusal is a failure."""
        headers = self._key | ({} if body is None else {"Idempotency-Key": key or uuid.uuid4().hex})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            started = time.monotonic()
            answer = self._http.request(method, path, json=body, headers=headers)
            self.slowest = max(self.slowest, time.monotonic() - started)
            if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                break
            assert answer.headers["Content-Type"] == "application/problem+json", answer.text
            assert int(answer.headers["Retry-After"]) >= 1
            assert time.monotonic() < deadline, "the product does not recover"
            self.refused += 1
            time.sleep(RETRY_SECONDS)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
        self.replayed += answer.headers.get("Idempotency-Replayed") == "true"
        told: dict[str, Any] = answer.json()
        return told


class Agent(Client):
    """Works, and notes what it was told to be stored."""

    def __init__(self, http: httpx.Client, key: str) -> None:
        super().__init__(http, key)
        self.worked, self.outcomes, self.handed_out = 0, list[str](), 0

    def work(self, n: int = 1) -> None:
        """Starts, answers and judges, with a correction two times of three."""
        for _ in range(n):
            task = {"task": f"Write loop number {self.worked % 12} by hand."}
            started = self.call("POST", "interactions/", task)
            self.handed_out += len(started["lessons"])
            self.call("PATCH", f"interactions/{started['id']}/", {"response": "Done."})
            for signal in ("failed", "accepted") if self.worked % 3 else ("accepted",):
                said = self.call("POST", f"interactions/{started['id']}/outcomes/", {"signal": signal})
                self.outcomes.append(said["id"])
            self.worked += 1

    def work_until(self, end: threading.Event) -> None:
        while not end.is_set():
            self.work()

    def waiting(self) -> bool:
        return bool(self.call("GET", "outcomes/?credited=false&page_size=1")["results"])


@contextmanager
def at_work(agents: list[Agent]) -> Iterator[list["Future[None]"]]:
    """All of them, each in a thread; at the end what went wrong is raised."""
    end = threading.Event()
    with ThreadPoolExecutor(len(agents)) as pool:
        working = [pool.submit(agent.work_until, end) for agent in agents]
        try:
            yield working
        finally:
            end.set()
    for each in working:
        each.result()


def go_on(agents: list[Agent], working: list["Future[None]"], n: int = 2) -> None:
    """Returns when each has done as many more works; raises what ended one of them."""
    before = [agent.worked for agent in agents]

    def further() -> bool:
        for each in working:
            if each.done():
                each.result()
        return all(agent.worked >= worked + n for agent, worked in zip(agents, before, strict=True))

    wait_until(further)


class Product:
    """What runs, the Redis it runs on, and a storyteller with the store."""

    def __init__(self, running: Up, redis: Redis, told: Story) -> None:
        self.running, self.redis, self.story = running, redis, told

    @property
    def var(self) -> Path:
        return self.running.var

    @property
    def key(self) -> str:
        """Of an agent's."""
        found = KEY.search(self.running.output)
        assert found
        return found[1]

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=f"{self.running.address}/api/v1/", timeout=60, trust_env=False, verify=False)


@contextmanager
def product(template: Path, redis: Redis) -> Iterator[Product]:
    """Everything on one Redis: its messages, and the counters of its limits. There are lessons to hand out."""
    settings = {
        "CELERY_BROKER_URL": redis.url,
        "REDIS_URL": redis.url,
        "SONDER_EMBEDDING": "hashing",
        "SONDER_SWEEP_SECONDS": "5",
        "SONDER_THROTTLE_LOOP": "1000000/min",
        "SONDER_THROTTLE_READ": "1000000/min",
    }
    with new_store() as var:
        copy(template, var)
        with up(var, **settings) as running, story(running.environment) as told:
            told.play("stock", 12)
            yield Product(running, redis, told)
