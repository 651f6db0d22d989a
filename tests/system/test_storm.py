"""While lessons are quarantined, released, rejected, edited, merged, erased and brought in again without a pause, no
answer holds one that was out of service when it was asked for.

`RETRIEVALS=n` makes the same test a long one, on a few hundred lessons.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.figures import tell
from tests.system.stores import ROOT, copy, environment, new_store
from tests.system.storm.board import Board, Mark, State, fault, marks
from tests.system.storm.texts import task, text

RETRIEVALS = int(os.environ.get("RETRIEVALS", "250"))
ACCOUNTS = 20 if "RETRIEVALS" in os.environ else 2  # with lessons of their own, a dozen each
SEED = random.SystemRandom().randrange(10**6) if "RETRIEVALS" in os.environ else 17
PATIENCE = 360 + RETRIEVALS / 20  # seconds
#: A few losses are enough for a quarantine here, and samples are off unless a process turns them on.
SETTINGS = {
    "SONDER_EMBEDDING": "hashing",
    "SONDER_TRUST_POLICY": "trial",
    "SONDER_TRIAL_ODDS": "1.5",
    "SONDER_RELEASE_ODDS": "2",
    "SONDER_QUARANTINE_ODDS": "4",
    "SONDER_PROBATION_SHARE": "0",
    "SONDER_THROTTLE_LOOP": "1000000/min",
    "SONDER_THROTTLE_READ": "1000000/min",
    "LOG_LEVEL": "CRITICAL",
}


def storm(var: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.system.storm", *map(str, (RETRIEVALS, ACCOUNTS, SEED))]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(var, **SETTINGS), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert not told["ended badly"], f"{told['ended badly']}: {done.stderr}"
    return told


def test_no_answer_holds_what_was_out_of_service_when_it_was_asked_for(template: Path) -> None:
    with new_store() as var:
        copy(template, var)
        told = storm(var)
    figures = {name: told[name] for name in ("checked", "overlapped", "barred", "samples", "again", "changes")}
    tell("storm", retrievals=told["answers"], wrong=told["faults"], **figures)
    assert told["told"] == [], f"the seed was {SEED}"
    assert told["faults"] == 0
    assert told["answers"] >= RETRIEVALS
    assert told["checked"] > told["answers"], "answers had lessons, of which the store's own word was known"


@pytest.fixture
def board() -> Board:
    """Two places of lessons and an account's."""
    made = Board(3)
    for place, state in enumerate((State.SERVES, State.UNREVIEWED, State.OPEN)):
        made.settle(place, 1, state)
    return made


@pytest.mark.parametrize(
    ("state", "incarnation", "gated", "sampled", "wrong"),
    [
        (State.SERVES, 1, True, False, ""),
        (State.UNREVIEWED, 1, False, False, ""),
        (State.UNREVIEWED, 1, True, False, "not approved"),
        (State.QUARANTINED, 1, False, False, "quarantined"),
        (State.QUARANTINED, 1, False, True, ""),
        (State.SERVES, 1, False, True, "in service, and marked as a sample"),
        (State.GONE, 1, False, False, "out of service"),
        (State.ERASED, 1, False, True, "erased"),
        (State.SERVES, 2, False, False, "out of service"),
    ],
)
def test_what_an_answer_may_hold_is_what_was_there_before_the_question(
    board: Board, state: State, incarnation: int, gated: bool, sampled: bool, wrong: str
) -> None:
    with board.changing([0]):
        board.settle(0, incarnation, state)
    known = board.known(board.seen(), 0)
    assert fault(known, Mark(place=0, incarnation=1), gated=gated, sampled=sampled) == wrong


def test_of_a_place_that_a_change_overlapped_nothing_is_said(board: Board) -> None:
    before = board.seen()
    with board.changing([0]):
        during = board.seen()
        assert board.known(before, 0) is None
        board.settle(0, 1, State.SERVES)
    assert board.known(during, 0) is None
    assert board.known(before, 0) is None, "it is as it was, and was something else meanwhile"
    assert board.known(before, 1) is not None
    assert board.known(board.seen(), 0) is not None


def test_a_change_of_which_nobody_says_what_it_came_to_is_an_error(board: Board) -> None:
    with pytest.raises(AssertionError, match="nobody said"), board.changing([0, 1]):
        board.settle(0, 1, State.SERVES)


def test_a_text_tells_on_itself_and_has_no_more_words_of_a_task_than_are_its_own() -> None:
    here, twin, next_one = text(3, 0, 5, 1), text(3, 0, 1, 1), text(3, 0, 5, 2)
    assert marks(f"{here} {twin}") == [Mark(place=41, incarnation=1), Mark(place=37, incarnation=1)]
    asked = set(task(0, 5).split())
    assert len(asked & set(here.split())) == len(asked & set(next_one.split())) == 8
    assert len(asked & set(twin.split())) == 4
    assert set(text(3, 0, 0, 1).split()) ^ set(twin.split()) == {"mark3x0x1.", "mark3x1x1."}
