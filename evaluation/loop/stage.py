"""Databases that are made for a run and dropped after it, and the processes that work on them.

Nothing here touches the store: its connection is only used to make and drop databases beside it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from django.conf import settings
from django.db import ProgrammingError, connections
from django.db.backends.utils import CursorWrapper

from evaluation.loop.arms import Arm
from memory.errors import SonderError
from sonder_site import lifeline

ROOT: Final = Path(__file__).resolve().parents[2]
PREFIX: Final = f"sonder_loop_{uuid.getnode():x}_"  # of this machine, then the process's id
#: As `manage.py up` starts it.
WORKER: Final = (
    "-W", "ignore:You're running the worker", "-m", "celery", "--quiet", "-A", "sonder_site", "worker",
    "--pool=threads", "--concurrency=4", "--without-gossip", "--without-mingle", "--without-heartbeat",
)  # fmt: skip
GRACE_SECONDS: Final = 20  # between SIGTERM and SIGKILL
CLONE_SECONDS: Final = 30  # for the connections of a process that has ended to close


class Broken(SonderError):
    """A process of the evaluation failed; the message has its last words."""

    title = "The evaluation failed"


@contextmanager
def _server() -> Iterator[CursorWrapper]:
    """A cursor on the store's server, on a connection of its own: databases are not made within a transaction."""
    connection = connections["default"].copy()
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A database with a broker's folder."""

    database: str
    folder: Path
    environment: Mapping[str, str]  # of its processes, beside the run's own

    def processes_environment(self) -> dict[str, str]:
        own = {"SONDER_VAR": settings.SONDER_VAR, "LOOP_DATABASE": self.database, "LOOP_FOLDER": str(self.folder)}
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        named = {"DJANGO_SETTINGS_MODULE": "evaluation.loop.settings", "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **self.environment, **own, **threads, **named}

    def start(self, *command: str, **options: Any) -> "subprocess.Popen[str]":
        """A Python program that the kernel ends with this process."""
        whole = [sys.executable, "-I", str(lifeline.__file__), str(os.getpid()), sys.executable, *command]
        return subprocess.Popen(
            whole, cwd=ROOT, env=self.processes_environment(), stdin=subprocess.DEVNULL, text=True, **options
        )

    def told(self, *part: str) -> Iterator[dict[str, Any]]:
        """What `python -m evaluation.loop PART` says, line by line. Raises Broken if it fails."""
        with tempfile.TemporaryFile("w+") as errors:
            process = self.start("-m", "evaluation.loop", *part, stdout=subprocess.PIPE, stderr=errors)
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
            finally:
                end(process)
            if process.returncode:
                errors.seek(0)
                last = errors.read()[-2000:].strip()
                raise Broken(f"`python -m evaluation.loop {part[0]}` ended with code {process.returncode}.\n{last}")

    @contextmanager
    def worker(self) -> Iterator[None]:
        """The product's own worker, on this database and this broker."""
        process = self.start(*WORKER, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            end(process)


def end(process: "subprocess.Popen[str]") -> None:
    """The process has ended when this returns."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Stages:
    """The databases of one run: one that is prepared once, and copies of it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._base = f"{PREFIX}{os.getpid()}"
        self._made = 0

    @contextmanager
    def open(self) -> Iterator["Stages"]:
        """Prepares the database that the others are copies of. Raises Broken where none can be made."""
        _drop_left_over()
        try:
            with _server() as server:
                server.execute(f"CREATE DATABASE {self._base}")
        except ProgrammingError as refusal:
            raise Broken(
                "The evaluation works in a database of its own, which the store's role may not make "
                f"({str(refusal).strip()}). Allow it: ALTER ROLE name CREATEDB."
            ) from None
        try:
            with self._on(self._base, {}) as stage:
                list(stage.told("prepare"))
            yield self
        finally:
            _drop(self._base)

    @contextmanager
    def copy(self, arm: Arm) -> Iterator[Stage]:
        """A fresh store for an arm."""
        self._made += 1
        name = f"{self._base}_{self._made}"
        _clone(self._base, name)
        try:
            with self._on(name, arm.environment) as stage:
                yield stage
        finally:
            _drop(name)

    @contextmanager
    def _on(self, database: str, environment: Mapping[str, str]) -> Iterator[Stage]:
        with tempfile.TemporaryDirectory(prefix="sonder-loop-", ignore_cleanup_errors=True) as folder:
            yield Stage(database=database, folder=Path(folder), environment={**self._environment, **environment})


def _clone(base: str, name: str) -> None:
    """Copies a database once nobody is connected to it any more."""
    with _server() as server:
        deadline = time.monotonic() + CLONE_SECONDS
        while time.monotonic() < deadline:
            server.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [base])
            if server.fetchone() == (0,):
                break
            time.sleep(0.05)
        server.execute(f"CREATE DATABASE {name} TEMPLATE {base}")


def _drop(name: str) -> None:
    with _server() as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _drop_left_over() -> None:
    """Databases of earlier runs on this machine that were killed before they could drop theirs."""
    with _server() as server:
        server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
        names = [str(name) for (name,) in server.fetchall()]
    for name in names:
        process = re.match(r"\d+", name.removeprefix(PREFIX))
        if process and not psutil.pid_exists(int(process[0])):
            _drop(name)
