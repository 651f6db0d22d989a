"""From rankings to shares, with intervals that say how far other questions of the kind could move them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np

from memory.rules.health import wilson

RESAMPLES: Final = 4000
SEED: Final = 7
KS: Final = (1, 5, 20)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with its 95% interval."""

    value: float
    low: float
    high: float


def found_within(ranking: Sequence[UUID], fits: Collection[UUID], k: int) -> float:
    """1 if a fitting lesson is among the first k, else 0."""
    return float(any(pk in fits for pk in ranking[:k]))


def reciprocal_rank(ranking: Sequence[UUID], fits: Collection[UUID]) -> float:
    """1 / the place of the first fitting lesson, from 1; 0 without one."""
    return next((1 / place for place, pk in enumerate(ranking, start=1) if pk in fits), 0.0)


def bootstrap(values: Sequence[float]) -> Estimate:
    """The mean with a percentile bootstrap over the questions (Efron 1979), always with the same resamples.

    Raises ValueError without values.
    """
    if not values:
        raise ValueError("No questions, so there is no mean.")
    sample = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(SEED)
    means = sample[chance.integers(0, len(sample), size=(RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(value=float(sample.mean()), low=float(low), high=float(high))


def share(part: int, whole: int) -> Estimate:
    """A share with its Wilson interval: of no case among n a bootstrap would say that there is none."""
    interval = wilson(part, whole)
    return Estimate(value=part / whole if whole else 0.0, low=interval.low, high=interval.high)
