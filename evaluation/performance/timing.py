"""Sides timed in turns, and how sure what came of it is."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

ROUNDS: Final = 200
WARM_UP: Final = 20
RESAMPLES: Final = 2000
SEED: Final = 42

Floats = NDArray[np.float64]
Action = Callable[[int], object]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its 95% bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the things compared."""

    act: Action  # is handed the number of the round
    before: Action | None = None  # what it needs first, not timed


def in_turns(sides: Mapping[str, Side], rounds: int = ROUNDS, warm_up: int = WARM_UP) -> dict[str, Floats]:
    """Seconds of each side in each round, (rounds,). Who goes first changes from round to round.

    Whatever else the machine does meanwhile hits all sides alike, so that ratios hold on a busy machine.
    """
    names = list(sides)
    taken: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()  # what is loaded by now is no garbage, and need not be looked at in the middle of a measurement
    for i in range(-warm_up, rounds):
        for name in names if i % 2 else reversed(names):
            side = sides[name]
            if side.before is not None:
                side.before(i % rounds)
            begin = time.perf_counter()
            side.act(i % rounds)
            if i >= 0:
                taken[name].append(time.perf_counter() - begin)
    gc.unfreeze()
    return {name: np.array(values) for name, values in taken.items()}


def median_ms(seconds: Floats) -> Estimate:
    """The median in milliseconds."""
    resampled = np.median(seconds[_picks(len(seconds))], axis=1)
    return _estimate(float(np.median(seconds)) * 1000, resampled * 1000)


def quantile_ms(seconds: Floats, share: float) -> Estimate:
    """The time within which this share of the rounds were done, in milliseconds."""
    resampled = np.quantile(seconds[_picks(len(seconds))], share, axis=1)
    return _estimate(float(np.quantile(seconds, share)) * 1000, resampled * 1000)


def ratio(ours: Floats, floor: Floats) -> Estimate:
    """median(ours) / median(floor). Rounds that both sides ran are resampled together."""
    picks = _picks(len(ours))
    others = picks if len(floor) == len(ours) else _picks(len(floor))
    resampled = np.median(ours[picks], axis=1) / np.median(floor[others], axis=1)
    return _estimate(float(np.median(ours) / np.median(floor)), resampled)


def mean(values: Floats) -> Estimate:
    """The mean of one number a query."""
    return _estimate(float(values.mean()), values[_picks(len(values))].mean(axis=1))


def _picks(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).integers(n, size=(RESAMPLES, n))


def _estimate(value: float, resampled: Floats) -> Estimate:
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value=value, low=float(low), high=float(high))
