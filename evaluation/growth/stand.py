"""The product at work on a filled store of its own: what agents and a reviewer need, and what watches it."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.growth.agents import Agent
from evaluation.growth.reviewer import Reviewer, address_of
from evaluation.report import Cell
from evaluation.running import ROOT, Up, environment, new_store, up
from memory.errors import SonderError

AGENTS: Final = 64  # that have a key, unless more are asked for
#: Limits that would hold up a measurement on purpose; everything else is as it comes.
SETTINGS: Final[Mapping[str, str]] = {"SONDER_THROTTLE_LOOP": "1000000/min", "SONDER_THROTTLE_READ": "1000000/min"}


class Broken(SonderError):
    """A process of the measurement failed; the message has its last words."""

    title = "The measurement failed"


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A store on which nothing runs yet."""

    var: Path
    keys: Sequence[str]  # one for each agent
    tasks: Sequence[str]
    login: tuple[str, str]  # user name and password
    machine: Mapping[str, Any]  # fields of evaluation.performance.machine.Machine
    settings: Mapping[str, str]  # of the environment, beside SETTINGS


@dataclass(frozen=True, kw_only=True)
class Stand:
    """The running product on a filled store."""

    filled: Filled
    running: Up

    @property
    def address(self) -> str:
        """Host and port."""
        return address_of(self.running.address)

    def agents(self, number: int) -> list[Agent]:
        return [Agent(self.address, key, self.filled.tasks, n) for n, key in enumerate(self.filled.keys[:number])]

    def reviewer(self) -> Reviewer:
        return Reviewer(self.address, *self.filled.login)


def inside(var: Path, *words: str, **settings: str) -> dict[str, Any]:
    """What a task of `evaluation.growth.inside` tells of the store in `var`. Raises Broken."""
    done = subprocess.run(
        [sys.executable, "-m", "evaluation.growth.inside", *words], cwd=ROOT, env=environment(var, **settings),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Broken(f"`{' '.join(words)}` ended with code {done.returncode}.\n{done.stderr[-2000:].strip()}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@contextmanager
def filled(lessons: int, *, accounts: int = 0, agents: int = AGENTS) -> Iterator[Filled]:
    """A store of so many lessons, gone at the end. With accounts, lessons belong to them."""
    settings = {"SONDER_LESSON_SCOPE": "account"} if accounts else {}
    with new_store() as var:
        told = inside(var, "fill", str(lessons), str(accounts), str(agents), **settings)
        machine = inside(var, "machine", **settings)
        yield Filled(
            var=var, keys=told["keys"], tasks=told["tasks"], login=tuple(told["login"]), machine=machine,
            settings=settings,
        )  # fmt: skip


@contextmanager
def started(store: Filled) -> Iterator[Stand]:
    """The product on it, ready."""
    with up(store.var, **SETTINGS, **store.settings) as running:
        yield Stand(filled=store, running=running)


def parameters(machine: Mapping[str, Any]) -> dict[str, Cell]:
    """The machine as a report tells it."""
    return {
        "cores": machine["cores"],
        "memory, GB": round(machine["memory_gb"]),
        "system": machine["system"],
        "Python": machine["python"],
        "PostgreSQL": machine["postgresql"],
        "pgvector": machine["pgvector"],
        "shared buffers": machine["shared_buffers"],
        "fdatasync, ms": round(machine["fdatasync_ms"], 2),
    }
