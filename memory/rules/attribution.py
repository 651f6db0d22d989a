"""How much of a loss one lesson carries: a loss is shared equally among the lessons handed out together."""

import math
from collections.abc import Iterable
from typing import Final

#: Slack of every comparison with a threshold. Six thirds add up to 1.9999999999999998 in binary floating point and
#: must count as 2; a billionth is far above rounding and far below any difference in evidence.
TOLERANCE: Final = 1e-9


def total_share(cohorts: Iterable[int]) -> float:
    """The losses that fall to one lesson: the sum of 1/cohort over its losses.

    `cohorts` holds, for each loss, how many lessons were handed out in that interaction, this one included (>= 1).
    The sum is correctly rounded, so that its terms' order does not matter. Raises ValueError for a cohort below 1.
    """
    return math.fsum(_share(cohort) for cohort in cohorts)


def _share(cohort: int) -> float:
    if cohort < 1:
        raise ValueError(f"A cohort holds at least the lesson itself, not {cohort} lessons.")
    return 1 / cohort


def reaches(value: float, threshold: float, tolerance: float = TOLERANCE) -> bool:
    """Whether `value` >= `threshold`, give or take `tolerance`."""
    return value >= threshold - tolerance


def stays_within(value: float, threshold: float, tolerance: float = TOLERANCE) -> bool:
    """Whether `value` <= `threshold`, give or take `tolerance`."""
    return value <= threshold + tolerance
