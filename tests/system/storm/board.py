"""What an answer may hold, known exactly to every process of a storm: one word of shared memory for each place.

A place is a lesson's, or an account's. Whoever is about to change what is there marks it as changing before the
transaction begins, and writes what it has become after the commit has returned, under the next version. Who asks copies
all words before it begins. A place whose word is the same after the answer had no change that overlapped: what the
store answered must agree with it. Of a place whose word moved nothing is known, for this answer.
"""

import mmap
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

SLOTS: Final = 12  # places of lessons in one dozen
MARK: Final = re.compile(r"mark(\d+)x(\d+)x(\d+)")  # dozen, slot and incarnation, in every text
_STATE_BITS, _INCARNATION_BITS = 4, 28
Words = NDArray[np.int64]


class State(IntEnum):
    """What is at a place."""

    GONE = 0  # no lesson, or one that is out of service for good
    ERASED = 1  # there was one, and nothing of it may be left
    UNREVIEWED = 2  # serves, but not where only what was approved may
    SERVES = 3
    QUARANTINED = 4
    OPEN = 5  # an account that is handed every lesson in service
    GATED = 6  # one that is handed approved lessons only
    CHANGING = 15


@dataclass(frozen=True, kw_only=True)
class Known:
    """A place that nothing moved while an answer was made."""

    state: State
    incarnation: int  # of the text that is there now; earlier ones are gone


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Which text it is, as the text itself says."""

    place: int
    incarnation: int


def place_of(dozen: int, slot: int) -> int:
    return dozen * SLOTS + slot


def marks(text: str) -> list[Mark]:
    """Every text that this one holds, in its order."""
    return [
        Mark(place=place_of(int(dozen), int(slot)), incarnation=int(incarnation))
        for dozen, slot, incarnation in MARK.findall(text)
    ]


def _word(version: int, incarnation: int, state: State) -> int:
    return version << (_INCARNATION_BITS + _STATE_BITS) | incarnation << _STATE_BITS | state


class Board:
    """Shared by this process and all that it forks. Each place has one writer."""

    def __init__(self, places: int) -> None:
        self.words: Words = np.frombuffer(mmap.mmap(-1, 8 * places), dtype=np.int64)

    def seen(self) -> Words:
        """All words as they are; copied before asking."""
        return self.words.copy()

    def known(self, seen: Words, place: int) -> Known | None:
        """What was there from `seen` until now; None if something moved it."""
        word = int(seen[place])
        if word != int(self.words[place]) or word & 15 == State.CHANGING:
            return None
        incarnation = word >> _STATE_BITS & (1 << _INCARNATION_BITS) - 1
        return Known(state=State(word & 15), incarnation=incarnation)

    def settle(self, place: int, incarnation: int, state: State) -> None:
        """Says what is there, after the commit."""
        self.words[place] = _word(self._version(place) + 1, incarnation, state)

    @contextmanager
    def changing(self, places: Collection[int]) -> Iterator[None]:
        """Around a change and the `settle` of each place."""
        for place in places:
            self.words[place] = _word(self._version(place) + 1, 0, State.CHANGING)
        yield
        unsettled = [place for place in places if int(self.words[place]) & 15 == State.CHANGING]
        assert not unsettled, f"nobody said what became of {unsettled}"

    def _version(self, place: int) -> int:
        return int(self.words[place]) >> (_INCARNATION_BITS + _STATE_BITS)


def fault(known: Known | None, mark: Mark, *, gated: bool, sampled: bool) -> str:
    """Why a text must not be in an answer; '' if it may, or if nobody can tell.

    `gated`: only approved lessons may. `sampled`: it is in the log as a sample of probation.
    """
    if known is None:
        return ""
    if mark.incarnation != known.incarnation or known.state in (State.GONE, State.ERASED):
        return "erased" if known.state == State.ERASED else "out of service"
    if known.state == State.QUARANTINED:
        return "" if sampled else "quarantined"
    if sampled:
        return "in service, and marked as a sample"
    return "not approved" if gated and known.state == State.UNREVIEWED else ""
