"""The product's running sums and expected losses as arrays, for many rows at once.

Tests hold every number in here to what `memory.rules.expectation` makes of the same log. "Own" sums are those of the
interactions that had the judged lesson in the cohort; taking them off leaves what the product calls "without it".
"""

from dataclasses import dataclass

import numpy as np

from evaluation.trust.world import Floats, Ints
from memory.rules.expectation import ExpectationConstants
from memory.rules.signals import SOURCES


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of the exposure log; all arrays have the shape of the question, `peers` and `pairs` one dimension more."""

    lesson: Ints
    source: Ints
    task: Ints
    slot: Ints  # of the lesson among the task's candidates
    peers: Ints  # the other lessons handed out; `lessons` where there are fewer
    pairs: Ints  # the number of the lesson's pair with each; 0 where there is none


class Sums:
    """Losses that were observed and expected, over everything credited so far."""

    def __init__(self, lessons: int, tasks: int, slots: int, constants: ExpectationConstants) -> None:
        self.constants = constants
        sources = len(SOURCES)
        self.source = np.zeros((2, sources))  # losses and interactions of each judge
        self.own_source = np.zeros((2, lessons, sources))
        self.task = np.zeros((2, tasks))  # observed and expected, here and below
        self.own_task = np.zeros((2, tasks, slots))
        self.lesson = np.zeros((2, lessons + 1))  # weighted; the last is nobody
        self.pair = np.zeros((2, 1024))  # weighted, by the number of the pair; 0 is none
        self.without = np.zeros((2, lessons))
        self._pairs: dict[tuple[int, int], int] = {}

    def pair_of(self, a: int, b: int) -> int:
        """The number of a pair of lessons."""
        key = (a, b) if a < b else (b, a)
        number = self._pairs.get(key)
        if number is None:
            number = self._pairs[key] = len(self._pairs) + 1
            if number == self.pair.shape[1]:
                self.pair = np.concatenate([self.pair, np.zeros_like(self.pair)], axis=1)
        return number

    def baseline(self, source: int) -> float:
        """b: the judge's loss rate over everything so far."""
        c = self.constants
        losses, n = self.source[:, source]
        return round(float((losses + c.rate_weight * c.prior_loss) / (n + c.rate_weight)), 12)

    def expected(self, rows: Rows, *, withheld: bool = False) -> Floats:
        """The expected loss of each row if its lesson did nothing. `withheld`: peers and niche stay out of it."""
        c = self.constants
        losses, n = self.source[:, rows.source] - self.own_source[:, rows.lesson, rows.source]
        rate = (losses + c.rate_weight * c.prior_loss) / (n + c.rate_weight)
        odds = rate / (1 - rate) * self.task_factor(rows)
        if not withheld:
            observed, expected = self.without[:, rows.lesson]
            niche = np.maximum(1.0, (observed + c.niche_weight) / (expected + c.niche_weight))
            odds = odds * self._peers(rows) * niche
        return np.asarray(np.clip(odds / (1 + odds), c.lowest, c.highest))

    def task_factor(self, rows: Rows) -> Floats:
        """How much harder each row's task is than its judges' rates say."""
        c = self.constants
        observed, expected = self.task[:, rows.task] - self.own_task[:, rows.task, rows.slot]
        return np.asarray(np.maximum(1.0, (observed + c.task_weight) / (expected + c.task_weight)))

    def _peers(self, rows: Rows) -> Floats:
        c = self.constants
        observed, expected = self.lesson[:, rows.peers] - self.pair[:, rows.pairs]
        scale = c.peer_cap / np.maximum(expected, c.peer_cap)
        heard = (observed * scale).sum(axis=-1), (expected * scale).sum(axis=-1)
        return np.asarray((heard[0] + c.peer_weight) / (heard[1] + c.peer_weight))

    def add(self, *, source: int, task: int, lost: bool, weight: float, cohort: Ints, slots: Ints, pairs: Ints) -> None:
        """Adds one interaction; `pairs` are the numbers of the cohort's pairs, each once."""
        y, b = float(lost), self.baseline(source)
        both, weighted = np.array([[y], [b]]), np.array([[weight * y], [weight * b]])
        self.source[:, source] += (y, 1.0)
        self.own_source[:, cohort, source] += np.array([[y], [1.0]])
        self.task[:, task] += (y, b)
        self.own_task[:, task, slots] += both
        if weight > 0:
            self.lesson[:, cohort] += weighted
            self.pair[:, pairs] += weighted

    def add_without(self, lessons: Ints, lost: bool, expected: Floats) -> None:
        """Adds an interaction that left lessons out, with the loss that was expected for each."""
        self.without[0, lessons] += float(lost)
        self.without[1, lessons] += np.round(expected, 12)
