"""Real workers, a real broker, killed while they credit: nothing is lost, and nothing is done twice.

`KILLS=200` makes the same test a long one, at other moments each time.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.figures import tell
from tests.system.killing import KILLS, PATIENCE, Stage, Story, moments, stage, story
from tests.system.stores import wait_until

OUTCOMES = 30  # that wait at each start of the worker, at least: enough to be in the middle of them when it dies
CREDITED = 10  # of them at most before it dies
SWEEP = "memory.tasks.credit_sweep"


@pytest.fixture
def store(template: Path) -> Iterator[Stage]:
    with stage(template) as own:
        yield own


@pytest.fixture
def agents(store: Stage) -> Iterator[Story]:
    with story(store.environment) as one:
        one.play("prepare", 8 * KILLS + OUTCOMES)  # two and a half outcomes each
        yield one


def kill_amid_credit(store: Stage, credited: int, more: float) -> None:
    """Kills the worker once it has credited so many outcomes, and so many seconds later. It was told of some of them,
    and finds others that a dead one was told of."""
    waiting = store.uncredited()
    assert waiting > CREDITED
    store.start_worker()
    store.announce(SWEEP)
    wait_until(lambda: store.uncredited() <= waiting - credited, every=0.002)
    time.sleep(more)
    store.kill_worker()


def credit_the_rest(store: Stage) -> float:
    """Starts a worker for what nobody has credited; how many seconds it took."""
    started = time.monotonic()
    store.start_worker()
    store.announce(SWEEP)
    wait_until(lambda: store.uncredited() == 0, PATIENCE)
    store.kill_worker()
    return time.monotonic() - started


def test_a_worker_that_is_killed_again_and_again_loses_nothing_and_counts_nothing_twice(
    store: Stage, agents: Story
) -> None:
    """With no worker outcomes are accepted, and one that starts later credits all that is left."""
    rng, unfinished = moments(), 0
    for _ in range(KILLS):
        agents.play("report", max(1, OUTCOMES + CREDITED - store.uncredited()))
        kill_amid_credit(store, rng.randint(1, CREDITED), rng.uniform(0, 0.02))
        unfinished += store.uncredited() > 0
    assert unfinished > 0  # it died in the middle of its work
    outcomes = agents.play("report")["outcomes"]
    assert outcomes > 15 * KILLS
    assert store.uncredited() > 0
    seconds = credit_the_rest(store)

    # Which outcome is credited follows from the outcomes alone, so this is what an undisturbed run would have credited.
    found = agents.play("check")
    tell(
        "worker, crediting", kills=KILLS, interrupted=unfinished, outcomes=outcomes,
        lost=outcomes - found["outcomes"] + found["uncredited"], twice=found["differences"],
        wrong=len(found["wrong"]) + found["gaps"], seconds=seconds,
    )  # fmt: skip
    assert found.pop("outcomes") == outcomes
    assert found.pop("credits") > 5 * KILLS  # what was retracted before anyone credited it has no row
    assert found == {"uncredited": 0, "gaps": False, "wrong": [], "differences": 0}
