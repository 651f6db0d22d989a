"""Age: a gentle factor in ranking, and a report about lessons whose evidence has grown old."""

#: Share of the ranking score that age can take away at most.
AGE_SHARE = 0.1


def age_factor(age_days: float, half_life: float = 30.0) -> float:
    """The factor on a fused score: 0.9 + 0.1 * 0.5 ** (age_days / half_life), in [0.9, 1].

    `age_days` counts from the latest eligible win, else from the lesson's creation; an age below zero (clocks differ)
    counts as zero. At equal relevance a fresh and an old lesson differ by a tenth at most. Both arguments are in days.

    Raises ValueError for a half-life that is not above zero.
    """
    return 1 - AGE_SHARE + AGE_SHARE * _remaining(age_days, half_life)


def effective_score(*, mean_reward: float, age_days: float, hits: int, misses: int, half_life: float = 30.0) -> float:
    """A lesson's worth today, for reports: mean_reward * 0.5 ** (age_days / half_life) + 0.05 * (hits - misses).

    `mean_reward` is in [-1, 1]; `hits` and `misses` are its wins and losses. No bound: many hits outweigh age.
    """
    return mean_reward * _remaining(age_days, half_life) + 0.05 * (hits - misses)


def is_stale(
    *, mean_reward: float, newest_outcome_days: float, effective: float, min_days: float = 60.0, below: float = 0.2
) -> bool:
    """Whether a lesson that once did well deserves a second look: nothing new for `min_days`, little worth left.

    `newest_outcome_days` is the age of its newest eligible outcome. A report, never a decision.
    """
    return mean_reward > 0 and newest_outcome_days >= min_days and effective < below


def _remaining(age_days: float, half_life: float) -> float:
    """The share in [0, 1] that exponential decay leaves."""
    if not half_life > 0:
        raise ValueError(f"The half-life {half_life} must be above zero.")
    return float(0.5 ** (max(age_days, 0.0) / half_life))
