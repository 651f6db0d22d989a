"""Agents at work over HTTP, each with a key and a connection of its own, who note how long each answer took."""

import json
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, RemoteDisconnected
from typing import Any, Final

PATIENCE_SECONDS: Final = 60
RESPONSE: Final = "Done: the change is made, its tests pass, and what was asked for is described in the notes. " * 3
LOST_EVERY: Final = 5  # one work in five fails


class Agent:
    """Whole loops, one after the other: starts, answers, judges. What goes wrong is noted, and it goes on."""

    def __init__(self, address: str, key: str, tasks: Sequence[str], number: int) -> None:
        self._address, self._tasks, self._number = address, tasks, number
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._connection = HTTPConnection(address, timeout=PATIENCE_SECONDS)
        self.loops = 0
        self.lessons = 0  # that were handed out
        self.starts: list[float] = []  # seconds of each start
        self.began: list[float] = []  # when each of them began, on the monotonic clock
        self.errors: list[str] = []
        self.reconnected = 0  # connections that the server had closed meanwhile

    def loop(self) -> None:
        """One piece of work, with a task that nobody had before."""
        n = self.loops
        task = f"{self._tasks[(self._number * 31 + n) % len(self._tasks)]} {self._number} {n} {uuid.uuid4().hex[:8]}"
        try:
            began = time.monotonic()
            started = self._call("POST", "interactions/", {"task": task})
            self.starts.append(time.monotonic() - began)
            self.began.append(began)
            self.lessons += len(started["lessons"])
            self._call("PATCH", f"interactions/{started['id']}/", {"response": RESPONSE})
            signal = "failed" if n % LOST_EVERY == 0 else "accepted"
            self._call("POST", f"interactions/{started['id']}/outcomes/", {"signal": signal})
        except (OSError, HTTPException, ValueError) as fault:
            self.errors.append(f"{type(fault).__name__}: {fault}")
            self._connection.close()
        self.loops += 1

    def work(self, end: threading.Event, every: float = 0.0) -> None:
        """Loops until the end: without a pause, or one each `every` seconds where it can keep up."""
        due = time.monotonic() + every * (self._number % 97) / 97  # not all at the same moment
        while not end.wait(max(0.0, due - time.monotonic())):
            self.loop()
            due = max(due + every, time.monotonic() - every)

    def _call(self, method: str, path: str, body: dict[str, str]) -> Any:
        """The answer. Raises ValueError for a refusal."""
        headers = self._headers | {"Idempotency-Key": uuid.uuid4().hex}
        try:
            answer = self._send(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError, RemoteDisconnected):
            # A server closes what lay idle, maybe just now. Under the same key a second try does nothing twice.
            self._connection.close()
            self.reconnected += 1
            answer = self._send(method, path, body, headers)
        read = answer.read()
        if answer.status >= 400:
            raise ValueError(f"{answer.status} {read[:300].decode(errors='replace')}")
        return json.loads(read)

    def _send(self, method: str, path: str, body: dict[str, str], headers: dict[str, str]) -> HTTPResponse:
        self._connection.request(method, f"/api/v1/{path}", json.dumps(body), headers)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def at_work(crowd: Sequence[Agent], every: float = 0.0) -> Iterator[None]:
    """Meanwhile they work, each in a thread."""
    end = threading.Event()
    with ThreadPoolExecutor(len(crowd)) as pool:
        working = [pool.submit(agent.work, end, every) for agent in crowd]
        try:
            yield
        finally:
            end.set()
    for agent, each in zip(crowd, working, strict=True):
        each.result()
        agent.close()
