"""Real workers, a real broker, killed without warning: nothing is lost, and nothing is done twice.

`KILLS=200` makes the same test a long one.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from sonder_site.embedded import server
from tests.system.stores import PATIENCE_SECONDS, ROOT, environment, manage, new_store, wait_until

KILLS = int(os.environ.get("KILLS", "10"))


@contextmanager
def redis_server(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A Redis of the test's own, which keeps its queues on disk."""
    program = shutil.which("redis-server")
    assert program is not None, "install redis-server"
    process = subprocess.Popen(
        [
            program,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(folder),
            "--appendonly",
            "yes",
            "--save",
            "",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(port))
        yield process
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Stage:
    """A store, the environment of its processes, and the worker that is alive at the moment."""

    def __init__(self, var: Path, broker: str) -> None:
        self.var = var
        self.environment = environment(
            var, CELERY_BROKER_URL=broker, SONDER_EMBEDDING="hashing", LOG_LEVEL="CRITICAL", SONDER_TRUST_POLICY="trial"
        )
        self.worker: subprocess.Popen[bytes] | None = None

    def play(self, part: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.system.scenario", part]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)

    def played(self, part: str) -> str:
        process = self.play(part)
        told, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, told
        return told

    def start_worker(self) -> None:
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "sonder_site", "worker", "--concurrency=2"]
        self.worker = subprocess.Popen(command, cwd=ROOT, env=self.environment, start_new_session=True)

    def kill_worker(self) -> None:
        """As kill -9 of the worker and its children, at once."""
        if self.worker is not None:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.wait()
            self.worker = None

    def uncredited(self) -> int:
        at = server.ensure_running(self.var)
        with psycopg.connect(host=at.host, port=at.port, user=at.user, dbname="sonder") as connection:
            row = connection.execute("SELECT count(*) FROM outcome WHERE credited_at IS NULL").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def stage() -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="sonder-redis-"))
    port = free_port()
    with new_store() as var, redis_server(folder, port):
        own = Stage(var, f"redis://127.0.0.1:{port}/0")
        assert manage(var, "migrate", "--verbosity=0").returncode == 0
        own.played("prepare")
        try:
            yield own
        finally:
            own.kill_worker()
            server.release(var)
    shutil.rmtree(folder)


def sound(told: str) -> None:
    """Every outcome is credited, to the right judge, once, and the sums equal a rebuild."""
    found = json.loads(told)
    assert found.pop("outcomes") > 200
    assert found.pop("credits") > 110  # what was retracted before anyone credited it has no row
    assert found == {"uncredited": 0, "gaps": False, "wrong": [], "differences": 0}


def test_a_worker_that_is_killed_again_and_again_loses_nothing_and_counts_nothing_twice(stage: Stage) -> None:
    rng = random.Random(17)
    reporting = stage.play("report")
    for _ in range(KILLS):
        stage.start_worker()
        time.sleep(rng.uniform(1.0, 4.0))
        stage.kill_worker()
    reporting.communicate(timeout=PATIENCE_SECONDS)
    sound(stage.played("check"))


def test_with_no_worker_outcomes_are_accepted_and_a_worker_that_starts_later_credits_them_all(stage: Stage) -> None:
    stage.played("report")
    assert stage.uncredited() > 200
    stage.start_worker()
    wait_until(lambda: stage.uncredited() == 0)
    stage.kill_worker()
    sound(stage.played("check"))
