"""A store with a real broker and a worker that is killed again and again."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from sonder_site.embedded import server
from tests.system.started import redis_server
from tests.system.stores import PATIENCE_SECONDS, ROOT, environment, manage, new_store

KILLS = int(os.environ.get("KILLS", "10"))
PATIENCE = PATIENCE_SECONDS + 2 * KILLS  # seconds for all that the kills left undone: a long run has more of it
SEED = 17 if "KILLS" not in os.environ else random.SystemRandom().randrange(10**6)


def moments() -> random.Random:
    """When to kill: the same moments each time in the suite, others each time in a long run, which names its seed."""
    print(f"Killing {KILLS} times; the seed is {SEED}.")
    return random.Random(SEED)


class Stage:
    """A store, the environment of its processes, and the worker that is alive at the moment."""

    def __init__(self, var: Path, broker: str, **more: str) -> None:
        self.var, self.broker = var, broker
        self.environment = environment(
            var, CELERY_BROKER_URL=broker, SONDER_EMBEDDING="hashing", LOG_LEVEL="CRITICAL",
            SONDER_TRUST_POLICY="trial", **more,
        )  # fmt: skip
        self._worker: subprocess.Popen[bytes] | None = None

    def play(self, *part: str) -> subprocess.Popen[str]:
        return play(self.environment, *part)

    def played(self, *part: str) -> str:
        return finished(self.play(*part))

    def start_worker(self) -> None:
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "sonder_site", "worker", "--concurrency=2"]
        self._worker = subprocess.Popen(command, cwd=ROOT, env=self.environment, start_new_session=True)

    def kill_worker(self) -> None:
        """As kill -9 of the worker and its children, at once."""
        if self._worker is not None:
            os.killpg(self._worker.pid, signal.SIGKILL)
            self._worker.wait()
            self._worker = None

    def number(self, query: str) -> int:
        """The one number that a query finds, or how many rows a statement changed."""
        at = server.ensure_running(self.var)
        with psycopg.connect(host=at.host, port=at.port, user=at.user, dbname="sonder") as connection:
            cursor = connection.execute(query)
            row = cursor.fetchone() if cursor.description else (cursor.rowcount,)
        assert row is not None
        return int(row[0])

    def uncredited(self) -> int:
        return self.number("SELECT count(*) FROM outcome WHERE credited_at IS NULL")


def play(environment: dict[str, str], *part: str) -> subprocess.Popen[str]:
    """A part of `scenario`, which takes lines and prints lines."""
    command = [sys.executable, "-m", "tests.system.scenario", *part]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> str:
    """What it prints until its end."""
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    return told


@contextmanager
def stage(**more: str) -> Iterator[Stage]:
    """A migrated store and a Redis; `more` is added to the environment of their processes."""
    with new_store() as var, redis_server() as broker:
        own = Stage(var, broker.url, **more)
        assert manage(var, "migrate", "--verbosity=0").returncode == 0
        try:
            yield own
        finally:
            own.kill_worker()
            server.release(var)
