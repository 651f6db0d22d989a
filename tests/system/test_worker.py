"""Real workers, a real broker, killed while they credit: nothing is lost, and nothing is done twice.

`KILLS=200` makes the same test a long one, at other moments each time.
"""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.system.killing import KILLS, PATIENCE, Stage, finished, moments, stage
from tests.system.stores import wait_until

OUTCOMES = 30  # that are reported before each start of the worker: enough to be in the middle of them when it dies


@pytest.fixture
def store() -> Iterator[Stage]:
    with stage() as own:
        own.played("prepare", str(12 * KILLS))  # two and a half outcomes each
        yield own


def report(reporting: subprocess.Popen[str], outcomes: int) -> None:
    """Returns when they are in the store."""
    assert reporting.stdin is not None
    assert reporting.stdout is not None
    print(outcomes, file=reporting.stdin, flush=True)
    assert reporting.stdout.readline() == "reported\n"


def sound(told: str) -> None:
    """Every outcome is credited, to the right judge, once, and the sums equal a rebuild.

    Which outcome is credited follows from the outcomes alone, so this is what an undisturbed run would have credited.
    """
    found = json.loads(told)
    assert found.pop("outcomes") > 20 * KILLS
    assert found.pop("credits") > 10 * KILLS  # what was retracted before anyone credited it has no row
    assert found == {"uncredited": 0, "gaps": False, "wrong": [], "differences": 0}


def test_a_worker_that_is_killed_again_and_again_loses_nothing_and_counts_nothing_twice(store: Stage) -> None:
    rng = moments()
    unfinished = 0
    with store.play("report") as reporting:
        for _ in range(KILLS):
            report(reporting, OUTCOMES)
            waiting = store.uncredited()
            store.start_worker()
            wait_until(lambda before=waiting: store.uncredited() < before)
            time.sleep(rng.uniform(0, 0.3))
            store.kill_worker()
            unfinished += store.uncredited() > 0
        finished(reporting)
    assert unfinished > KILLS / 2  # it died in the middle of its work
    sound(store.played("check"))


def test_with_no_worker_outcomes_are_accepted_and_a_worker_that_starts_later_credits_them_all(store: Stage) -> None:
    store.played("report")
    assert store.uncredited() > 20 * KILLS
    store.start_worker()
    wait_until(lambda: store.uncredited() == 0, PATIENCE)
    store.kill_worker()
    sound(store.played("check"))
