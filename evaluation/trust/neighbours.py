"""A try: an expected loss that also knows how tasks like this one went. No part of the product.

Each task's losses are pooled with those of the tasks that lie near it in the embedding space, each counted by how near,
and the pooled ratio of observed to expected losses takes the place of the task's own; an easy neighbourhood makes a
loss less expected. As everywhere, what the judged lesson took part in is left out.
"""

from typing import Final

import numpy as np

from evaluation.trust.sums import Rows, Sums
from evaluation.trust.trial import Trial
from evaluation.trust.world import CANDIDATES, Floats, Ints, World
from memory.rules.expectation import ExpectationConstants
from memory.rules.ledger import LedgerConstants
from memory.rules.probation import ProbationConstants

NEAR: Final = 0.7  # cosine from which a task hears of another: by a weight of 0 there, rising to 1 for itself
NEAREST: Final = 30  # tasks that hear of one at most
WORTH: Final = 30.0  # expected losses that the factor 1 is worth: many, since neighbours are only alike


class NeighbourSums(Sums):
    """The product's sums, and for each task those of its neighbourhood."""

    def __init__(self, world: World, constants: ExpectationConstants) -> None:
        super().__init__(world.scenario.lessons, len(world.base), CANDIDATES, constants)
        self._candidates = world.candidates
        self._hearing = _hearing(world.vectors)
        self.pooled = np.zeros((2, len(world.base)))
        self.own_pooled = np.zeros((2, len(world.base), CANDIDATES))

    def task_factor(self, rows: Rows) -> Floats:
        """How much harder, or easier, the row's neighbourhood is than its judges' rates say."""
        observed, expected = self.pooled[:, rows.task] - self.own_pooled[:, rows.task, rows.slot]
        return np.asarray((observed + WORTH) / (expected + WORTH))

    def add(self, *, source: int, task: int, lost: bool, weight: float, cohort: Ints, slots: Ints, pairs: Ints) -> None:
        """Adds one interaction, also to the tasks that hear of it."""
        hearing, weights = self._hearing[task]
        added = np.array([[float(lost)], [self.baseline(source)]]) * weights
        self.pooled[:, hearing] += added
        if len(cohort):
            which, slot = np.nonzero(np.isin(self._candidates[hearing], cohort))
            self.own_pooled[:, hearing[which], slot] += added[:, which]
        super().add(source=source, task=task, lost=lost, weight=weight, cohort=cohort, slots=slots, pairs=pairs)


def _hearing(vectors: Floats) -> list[tuple[Ints, Floats]]:
    """The tasks that hear of each task, itself among them, and by what weight."""
    found = []
    for start in range(0, len(vectors), 500):
        for cosines in vectors[start : start + 500] @ vectors.T:
            nearest = np.argpartition(-cosines, min(NEAREST, len(cosines)) - 1)[:NEAREST]
            nearest = nearest[cosines[nearest] > NEAR]
            found.append((nearest, (cosines[nearest] - NEAR) / (1 - NEAR)))
    return found


def trial_with_neighbours(
    world: World, ledger: LedgerConstants, probation: ProbationConstants, expectation: ExpectationConstants
) -> Trial:
    """The policy `trial` with the other expectation."""
    policy = Trial(world, ledger, probation, expectation)
    policy.sums = NeighbourSums(world, expectation)
    return policy
