"""From numbers to px, and the round numbers that an axis shows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.utils.safestring import SafeString

from review.charts.drawing import join, line, text

#: What an axis may end at, times a power of ten: each has a half with at most one digit more.
_ROUND: Final = (1, 2, 3, 4, 5, 6, 8, 10)
_NOISE: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class Linear:
    """An axis from 0: `start` px at 0, `end` px at `top`. Beyond its ends there is nothing: values are kept on it."""

    top: float  # > 0
    start: float  # px
    end: float  # px

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * min(1.0, max(0.0, value / self.top))

    @property
    def ticks(self) -> tuple[float, float, float]:
        return 0.0, self.top / 2, self.top


@dataclass(frozen=True, kw_only=True)
class Logarithmic:
    """An axis of odds from 1: `start` px at 1 or below, `end` px at `top` or above."""

    top: float  # > 1
    start: float  # px
    end: float  # px

    def __call__(self, value: float) -> float:
        share = math.log(min(self.top, max(1.0, value))) / math.log(self.top)
        return self.start + (self.end - self.start) * share


def round_top(values: Iterable[float], most: float = math.inf) -> float:
    """The least round number that no value exceeds, at most `most`; 1 where no value is above 0.

    Raises ValueError if a value is no finite number.
    """
    listed = list(values)
    if not all(math.isfinite(value) for value in listed):
        raise ValueError(f"An axis cannot reach {listed}.")
    highest = max(listed, default=0.0)
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return min(most, next(step * power for step in _ROUND if step * power >= highest * (1 - _NOISE)))


def plain(value: float) -> str:
    """A number with at most two digits that count, and no exponent: `0.0004`, `2.5`, `100`."""
    return f"{Decimal(f'{value:.2g}'):f}"


def rate_axis(scale: Linear, y: float, *, above: float | None = None) -> SafeString:
    """The axis of a rate at height `y`: labels at 0, in the middle and at the end, and grid lines from `above`."""
    first, middle, last = scale.ticks
    labels: Sequence[SafeString] = (
        text(scale(first), y + 16, "0%", "muted"),
        text(scale(middle), y + 16, f"{plain(100 * middle)}%", "muted", "middle"),
        text(scale(last), y + 16, f"{plain(100 * last)}%", "muted", "end"),
    )
    grid = [line(scale(tick), above, scale(tick), y, "grid") for tick in scale.ticks if above is not None]
    marks = [line(scale(tick), y, scale(tick), y + 4, "axis") for tick in scale.ticks]
    return join([*grid, line(scale.start, y, scale.end, y, "axis"), *marks, *labels])
