"""Workers that are killed while a language model answers them: each interaction ends once, and each lesson is one.

`KILLS=200` makes the same test a long one, at other moments each time.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.distillers.server import Server, chat_server, lesson
from tests.system.figures import tell
from tests.system.killing import KILLS, PATIENCE, Stage, Story, moments, stage, story
from tests.system.scenario import JOB, TAUGHT
from tests.system.stores import wait_until

ANSWER_SECONDS = 1.0  # of the model, as long as workers are killed
DEADLIEST_SECONDS = 0.6  # after the question: the latest moment for a kill
WORK = 3 * KILLS + 2  # interactions: more than the workers can end before they are killed
EMPTY = 4  # every fourth teaches nothing
SWEEP = "memory.tasks.distill_sweep"


def number_of(request: dict[str, Any]) -> int:
    """Which interaction the model is asked about."""
    found = re.fullmatch(JOB.format(n=r"(\d+)"), json.loads(request["messages"][-1]["content"])["task"])
    assert found
    return int(found[1])


def answer(request: dict[str, Any]) -> dict[str, Any]:
    n = number_of(request)
    return lesson(None if n % EMPTY == 0 else TAUGHT.format(n=n))


@pytest.fixture
def model() -> Iterator[Server]:
    with chat_server() as server:
        server.before, server.delay = answer, ANSWER_SECONDS
        yield server


@pytest.fixture
def store(model: Server, template: Path) -> Iterator[Stage]:
    settings = {
        "SONDER_DISTILLER_URL": model.url,
        "SONDER_DISTILLER_MODEL": "slow",
        "SONDER_DISTILL_MAX_ATTEMPTS": "10",  # more than one interaction is killed: chance must not use them up
    }
    with stage(template, **settings) as own:
        yield own


@pytest.fixture
def agents(store: Stage) -> Iterator[Story]:
    with story(store.environment) as one:
        one.play("teach", WORK)
        yield one


def expire(store: Stage) -> int:
    """As if the leases of the dead had run out, which takes minutes; returns how many they held."""
    ends = "UPDATE lesson_distillation SET lease_expires_at = now() - interval '1 second'"
    return store.number(f"{ends} WHERE state = 'claimed' AND lease_expires_at > now()")


def kill_amid_an_answer(store: Stage, model: Server, wait: float) -> None:
    """Kills the worker while it waits for the model, so many seconds after it asked."""
    asked = len(model.requests)
    store.start_worker()
    store.announce(SWEEP)
    wait_until(lambda: len(model.requests) > asked, every=0.005)
    time.sleep(wait)
    store.kill_worker()


def end_the_rest(store: Stage, model: Server) -> float:
    """Starts a worker for all that is still open, with a quick model; how many seconds it took."""
    started, model.delay = time.monotonic(), 0.01
    store.start_worker()
    store.announce(SWEEP)
    still_open = "SELECT count(*) FROM lesson_distillation WHERE completed_at IS NULL"
    wait_until(lambda: store.number(still_open) == 0, PATIENCE)
    store.kill_worker()
    return time.monotonic() - started


def test_each_interaction_ends_once_and_each_lesson_is_stored_once(store: Stage, model: Server, agents: Story) -> None:
    rng, crashed = moments(), 0
    for _ in range(KILLS):
        kill_amid_an_answer(store, model, rng.uniform(0, DEADLIEST_SECONDS))
        held = expire(store)
        assert held <= 2  # one for each process of the worker
        crashed += held
    assert crashed > 0
    seconds = end_the_rest(store, model)

    found = agents.play("distilled")
    expected = sorted(TAUGHT.format(n=n) for n in range(WORK) if n % EMPTY)
    tell(
        "worker, distilling", kills=KILLS, interrupted=crashed, interactions=WORK,
        lost=len(set(expected) - set(found["lessons"])), twice=len(found["lessons"]) - len(set(found["lessons"])),
        wrong=len(found["strays"]) + found["claims"], seconds=seconds,
    )  # fmt: skip
    assert found["claims"] == 0
    assert found["ends"] == {"stored": len(expected), "no_candidate": WORK - len(expected)}
    assert sorted(found["lessons"]) == expected
    assert found["strays"] == []  # lessons, or vectors, that no distillation accounts for
    # Every attempt but the last of each interaction ended with its worker, and was counted.
    assert sum(found["attempts"].values()) == WORK + crashed
    asked = Counter(JOB.format(n=number_of(request)) for request in model.requests)
    assert all(1 <= asked[task] <= attempts for task, attempts in found["attempts"].items())
