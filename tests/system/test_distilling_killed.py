"""Workers that are killed while a language model answers them: each interaction ends once, and each lesson is one.

`KILLS=200` makes the same test a long one, at other moments each time.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from sonder_site.celery_settings import SOFT_LIMIT_SECONDS
from tests.distillers.server import Server, chat_server, lesson
from tests.system.killing import KILLS, PATIENCE, Stage, moments, stage
from tests.system.scenario import JOB, TAUGHT
from tests.system.stores import wait_until
from tests.system.test_broker import configured

ANSWER_SECONDS = 0.5
WORK = 3 * KILLS + 2  # interactions: more than the workers can end before they are killed
EMPTY = 4  # every fourth teaches nothing


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
def store(model: Server) -> Iterator[Stage]:
    settings = {
        "SONDER_DISTILLER_URL": model.url,
        "SONDER_DISTILLER_MODEL": "slow",
        "SONDER_DISTILL_MAX_ATTEMPTS": "10",  # more than one interaction is killed: chance must not use them up
    }
    with stage(**settings) as own:
        own.played("teach", str(WORK))
        yield own


def expire(store: Stage) -> int:
    """As if the leases of the dead had run out, which takes minutes; returns how many they held."""
    ends = "UPDATE lesson_distillation SET lease_expires_at = now() - interval '1 second'"
    return store.number(f"{ends} WHERE state = 'claimed' AND lease_expires_at > now()")


def sweep(store: Stage) -> None:
    """Asks the worker for what no message announces any more, as the schedule would."""
    with configured(store.broker, store.var) as app:
        app.send_task("memory.tasks.distill_sweep", expires=SOFT_LIMIT_SECONDS, ignore_result=True)


def kill_amid_an_answer(store: Stage, model: Server, wait: float) -> None:
    """Kills the worker while it waits for the model, so many seconds after it asked."""
    asked = len(model.requests)
    store.start_worker()
    sweep(store)
    wait_until(lambda: len(model.requests) > asked)
    time.sleep(wait)
    store.kill_worker()


def test_each_interaction_ends_once_and_each_lesson_is_stored_once(store: Stage, model: Server) -> None:
    rng, crashed = moments(), 0
    for _ in range(KILLS):
        kill_amid_an_answer(store, model, rng.uniform(0, 0.9 * ANSWER_SECONDS))
        held = expire(store)
        assert held <= 2  # one for each process of the worker
        crashed += held
    assert crashed > KILLS / 2
    store.start_worker()
    sweep(store)
    still_open = "SELECT count(*) FROM lesson_distillation WHERE completed_at IS NULL"
    wait_until(lambda: store.number(still_open) == 0, PATIENCE)
    store.kill_worker()

    found = json.loads(store.played("distilled"))
    assert found["claims"] == 0
    assert found["ends"] == {"stored": WORK - len(range(0, WORK, EMPTY)), "no_candidate": len(range(0, WORK, EMPTY))}
    assert sorted(found["lessons"]) == sorted(TAUGHT.format(n=n) for n in range(WORK) if n % EMPTY)
    assert found["strays"] == []  # lessons, or vectors, that no distillation accounts for
    # Every attempt but the last of each interaction ended with its worker, and was counted.
    assert sum(found["attempts"].values()) == WORK + crashed
    asked = Counter(JOB.format(n=number_of(request)) for request in model.requests)
    assert all(1 <= asked[task] <= attempts for task, attempts in found["attempts"].items())
