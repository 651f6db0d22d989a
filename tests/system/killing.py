"""A store with a real broker and a worker that is killed again and again."""

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from sonder_site.embedded import server
from tests.system.started import redis_server
from tests.system.stores import PATIENCE_SECONDS, ROOT, copy, end_postgres, environment, new_store, wait_until
from tests.system.test_broker import configured

KILLS = int(os.environ.get("KILLS", "4"))
PATIENCE = PATIENCE_SECONDS + 10 * KILLS  # seconds for all that the kills left undone: a long run has more of it
SEED = 17 if "KILLS" not in os.environ else random.SystemRandom().randrange(10**6)
WORKER = ("--quiet", "-A", "sonder_site", "worker", "--concurrency=2", "--without-gossip", "--without-mingle")


def moments() -> random.Random:
    """When to kill: the same moments each time in the suite, others each time in a long run, which names its seed."""
    print(f"Killing {KILLS} times; the seed is {SEED}.")
    return random.Random(SEED)


class Talk:
    """A Python program that answers each line with a line."""

    def __init__(self, environment: dict[str, str], *program: str) -> None:
        command, pipe = [sys.executable, "-m", *program], subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)

    def ask(self, line: str, patience: float = PATIENCE) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        assert select.select([self._process.stdout], [], [], patience)[0], f"no answer to {line!r} in time"
        return self._process.stdout.readline()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class Story(Talk):
    """A talk with `tests.system.scenario`."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(environment, "tests.system.scenario")

    def play(self, *part: object, patience: float = PATIENCE) -> Any:
        return json.loads(self.ask(" ".join(map(str, part)), patience))


@contextmanager
def story(environment: dict[str, str]) -> Iterator[Story]:
    one = Story(environment)
    try:
        yield one
    finally:
        one.end()


class Stage:
    """A store, the environment of its processes, and the worker that is alive at the moment."""

    def __init__(self, var: Path, broker: str, **more: str) -> None:
        self.var, self.broker = var, broker
        self.environment = environment(
            var, CELERY_BROKER_URL=broker, SONDER_EMBEDDING="hashing", LOG_LEVEL="CRITICAL",
            SONDER_TRUST_POLICY="trial", **more,
        )  # fmt: skip
        self._workers = Talk(self.environment, "tests.system.warm", *WORKER)
        self._worker: int | None = None
        at = server.ensure_running(var)
        self._connection = psycopg.connect(host=at.host, port=at.port, user=at.user, dbname="sonder", autocommit=True)

    def start_worker(self) -> None:
        self._worker = int(self._workers.ask("start"))

    def kill_worker(self) -> None:
        """As kill -9 of the worker and its children, at once."""
        if self._worker is not None:
            with suppress(ProcessLookupError):  # it may have died by itself; the test will miss its work
                os.killpg(self._worker, signal.SIGKILL)
            wait_until(self._is_gone, every=0.002)
            self._worker = None

    def _is_gone(self) -> bool:
        assert self._worker is not None
        with suppress(ProcessLookupError):
            os.kill(self._worker, 0)
            return False
        return True

    def announce(self, task: str) -> None:
        """Asks the worker for a sweep, as the schedule would."""
        with configured(self.broker, self.var) as app:
            app.send_task(task, expires=600, ignore_result=True)

    def number(self, query: str) -> int:
        """The one number that a query finds, or how many rows a statement changed."""
        cursor = self._connection.execute(query)
        row = cursor.fetchone() if cursor.description else (cursor.rowcount,)
        assert row is not None
        return int(row[0])

    def uncredited(self) -> int:
        return self.number("SELECT count(*) FROM outcome WHERE credited_at IS NULL")

    def end(self) -> None:
        self.kill_worker()
        self._workers.end()
        self._connection.close()
        end_postgres(self.var)
        server.release(self.var)


@contextmanager
def stage(template: Path, **more: str) -> Iterator[Stage]:
    """A copy of the template and a Redis; `more` is added to the environment of their processes."""
    with new_store() as var, redis_server() as broker:
        copy(template, var)
        own = Stage(var, broker.url, **more)
        try:
            yield own
        finally:
            own.end()
