"""How fast a number grows: the straight line of least squares through it, with the interval of its slope."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.trust.statistics import T


@dataclass(frozen=True, kw_only=True)
class Slope:
    """Change of y for each step of x, with its 95% interval."""

    value: float
    low: float
    high: float
    start: float  # the line at x = 0

    def scaled(self, by: float) -> "Slope":
        """The change for `by` steps of x."""
        return Slope(value=self.value * by, low=self.low * by, high=self.high * by, start=self.start)


def slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Ordinary least squares with Student's interval; of two points the interval has no width.

    Source: Draper and Smith 1998, Applied Regression Analysis, 1.4. Raises ValueError for fewer than two places.
    """
    at, seen = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    spread = float(((at - at.mean()) ** 2).sum()) if len(at) else 0.0
    if spread == 0:
        raise ValueError("a line needs two places")
    value = float(((at - at.mean()) * (seen - seen.mean())).sum()) / spread
    start = float(seen.mean() - value * at.mean())
    free = len(at) - 2
    left = float(((seen - start - value * at) ** 2).sum())
    half = T[min(free, len(T)) - 1] * (left / free / spread) ** 0.5 if free else 0.0
    return Slope(value=value, low=value - half, high=value + half, start=start)


def averaged(seconds: Sequence[float], values: Sequence[float], over: float) -> tuple[list[float], list[float]]:
    """The mean of each stretch of `over` seconds, at its middle, in seconds: neighbouring samples repeat each other,
    and taken as many they would make the interval too narrow."""
    at, seen = np.asarray(seconds, dtype=np.float64), np.asarray(values, dtype=np.float64)
    stretch = (at // over).astype(int)
    kept = [np.flatnonzero(stretch == each) for each in np.unique(stretch)]
    return [float(at[each].mean()) for each in kept], [float(seen[each].mean()) for each in kept]
