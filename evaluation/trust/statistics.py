"""Intervals over seeds, and medians of times that some never reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

#: Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom.
T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
RESAMPLES: Final = 4000


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its 95% interval; all None where there is nothing to estimate from."""

    value: float | None
    low: float | None = None
    high: float | None = None


def mean(values: Sequence[float], *, lowest: float = -math.inf, highest: float = math.inf) -> Estimate:
    """The mean over seeds with Student's interval, kept within the possible values. NaN is a seed without the thing."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Estimate(value=None)
    middle = math.fsum(known) / len(known)
    if len(known) == 1:
        return Estimate(value=middle)
    spread = math.sqrt(math.fsum((value - middle) ** 2 for value in known) / (len(known) - 1) / len(known))
    half = T[min(len(known) - 1, len(T)) - 1] * spread  # beyond 30 the quantile hardly falls: a little too wide
    return Estimate(value=middle, low=max(lowest, middle - half), high=min(highest, middle + half))


def ratio(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The ratio of two sums over seeds with the percentile interval of a bootstrap over seeds.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13. The same seeds always give the same
    interval.
    """
    a, b = np.array(above, dtype=np.float64), np.array(below, dtype=np.float64)
    if b.sum() <= 0:
        return Estimate(value=None)
    value = float(a.sum() / b.sum())
    if len(a) == 1:
        return Estimate(value=value)
    drawn = np.random.default_rng(0).integers(0, len(a), (RESAMPLES, len(a)))
    parts = b[drawn].sum(axis=1)
    ratios = a[drawn].sum(axis=1)[parts > 0] / parts[parts > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Estimate(value=value, low=float(low), high=float(high))


def median_time(times: Sequence[float], happened: Sequence[bool]) -> float | None:
    """The median of times of which some were cut short before the thing happened; None if over half never get there.

    Source: Kaplan and Meier 1958, Nonparametric estimation from incomplete observations, JASA 53:457-481.
    """
    waited, known = np.array(times, dtype=np.float64), np.array(happened, dtype=np.bool_)
    left = 1.0
    for time in np.unique(waited[known]):
        left *= 1 - (known & (waited == time)).sum() / (waited >= time).sum()
        if left <= 0.5:
            return float(time)
    return None
