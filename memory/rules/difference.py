"""How far two shares lie apart."""

import math
from dataclasses import dataclass

from memory.rules.health import wilson


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first share less the second, with the range in which it plausibly lies."""

    value: float  # in [-1, 1]
    low: float  # in [-1, value]
    high: float  # in [value, 1]


def difference(successes: int, n: int, other_successes: int, other_n: int) -> Difference:
    """`successes / n` less `other_successes / other_n`, with a 95% interval from the two score intervals.

    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17:873-890, method 10. Raises ValueError if one of the two counted nothing, or more than it had.
    """
    if n <= 0 or other_n <= 0:
        raise ValueError("A share of nothing is no share.")
    first, second = successes / n, other_successes / other_n
    a, b = wilson(successes, n), wilson(other_successes, other_n)
    value = first - second
    return Difference(
        value=value,
        low=max(-1.0, value - math.hypot(first - a.low, b.high - second)),
        high=min(1.0, value + math.hypot(a.high - first, second - b.low)),
    )
