"""The last rows of every lesson, and the ledgers over them with today's sums, for many lessons at once.

The same sequence of numbers that `memory.rules.ledger.replay` computes one by one, as tests hold it to.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from evaluation.trust.policy import COHORT
from evaluation.trust.sums import Rows, Sums
from evaluation.trust.world import Floats, Ints
from memory.rules.ledger import LedgerConstants


class Ledgers:
    """The last `constants.window` eligible rows of each lesson, in rings."""

    def __init__(self, lessons: int, constants: LedgerConstants) -> None:
        self.constants = constants
        self.seen = np.zeros(lessons, dtype=np.int64)  # eligible rows so far, also those no longer remembered
        shape = (lessons, constants.window)
        self._source, self._task, self._slot = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self._weight, self._loss = np.zeros(shape), np.zeros(shape)
        self._peers = np.full((*shape, COHORT - 1), lessons)
        self._pairs = np.zeros((*shape, COHORT - 1), dtype=np.int64)

    def remember(self, rows: Rows, weight: float, lost: bool) -> None:
        """Adds one row to each lesson's ring."""
        at = (rows.lesson, self.seen[rows.lesson] % self.constants.window)
        self._source[at], self._task[at], self._slot[at] = rows.source, rows.task, rows.slot
        self._weight[at], self._loss[at] = weight, float(lost)
        self._peers[at], self._pairs[at] = rows.peers, rows.pairs
        self.seen[rows.lesson] += 1

    def _last(self, lessons: Ints) -> tuple[Ints, Ints]:
        """Where the rows lie, oldest first and right-aligned; an index below 0 in the second array is no row."""
        seen = self.seen[lessons][:, None]
        longest = min(self.constants.window, int(seen.max(initial=0)))
        order = seen + np.arange(-longest, 0)
        return order % self.constants.window, order

    def expected(self, lessons: Ints, sums: Sums) -> tuple[Floats, Ints]:
        """Each row's expected loss with today's sums, oldest first, and its number; below 0 there is no row."""
        places, order = self._last(lessons)
        return sums.expected(self._rows(lessons, places)), order

    def s(self, lessons: Ints, sums: Sums) -> Floats:
        """S of each lesson with today's sums: the steps added up, never below zero."""
        places, order = self._last(lessons)
        if not places.size:
            return np.zeros(len(lessons))
        ratio = self.constants.odds_ratio
        expected = sums.expected(self._rows(lessons, places))
        at = (lessons[:, None], places)
        weight = np.where(order >= 0, self._weight[at], 0.0)
        steps = weight * (self._loss[at] * math.log(ratio) - np.log1p((ratio - 1) * expected))
        total = np.cumsum(steps, axis=1)
        # The last value of s = max(0, s + step): how far the sum has risen above its lowest point so far, or above 0.
        return np.asarray(total[:, -1] - np.minimum(0.0, total.min(axis=1)))

    def loss_tasks(self, lesson: int) -> int:
        """Different tasks among the remembered losses."""
        rows = min(self.constants.window, int(self.seen[lesson]))
        return len(set(self._task[lesson, :rows][self._loss[lesson, :rows] > 0].tolist()))

    def _rows(self, lessons: Ints, places: Ints) -> Rows:
        at = (np.broadcast_to(lessons[:, None], places.shape), places)
        return Rows(
            lesson=at[0],
            source=self._source[at],
            task=self._task[at],
            slot=self._slot[at],
            peers=self._peers[at],
            pairs=self._pairs[at],
        )


def cohort_rows(
    sums: Sums, *, source: int, task: int, cohort: Sequence[int], slots: Sequence[int], nobody: int
) -> tuple[Rows, Ints]:
    """The rows of one interaction's cohort, and the numbers of its pairs, each once."""
    size = len(cohort)
    peers = np.full((size, COHORT - 1), nobody)
    pairs = np.zeros((size, COHORT - 1), dtype=np.int64)
    numbers = []
    for a, b in _pairs(size):
        number = sums.pair_of(cohort[a], cohort[b])
        numbers.append(number)
        peers[a, b - 1], peers[b, a] = cohort[b], cohort[a]
        pairs[a, b - 1] = pairs[b, a] = number
    rows = Rows(
        lesson=np.array(cohort, dtype=np.int64),
        source=np.full(size, source),
        task=np.full(size, task),
        slot=np.array(slots, dtype=np.int64),
        peers=peers,
        pairs=pairs,
    )
    return rows, np.array(numbers, dtype=np.int64)


def _pairs(size: int) -> Iterator[tuple[int, int]]:
    return ((a, b) for a in range(size) for b in range(a + 1, size))
