"""How often lessons lose, by how often they have been scored.

Rare lessons sit on unusual, hard tasks and lose more often through no fault of their own; a lesson is therefore
compared with lessons of its own band. The rates of `BANDS` were measured once on a live store.
"""

import math
from dataclasses import dataclass
from typing import Final

#: How many scored retrievals a band's prior is worth against a store's own counts: enough that a young store does not
#: chase its first dozen outcomes, few enough that a few hundred of its own replace the prior.
PRIOR_WEIGHT: Final = 50


@dataclass(frozen=True, kw_only=True)
class Band:
    """Lessons with `lower` to `upper` scored retrievals (wins and losses over their life)."""

    lower: int  # fewest scored retrievals, inclusive
    upper: int | None  # most scored retrievals, inclusive; None for no limit
    prior: float  # measured share of losses among their scored retrievals, in (0, 1)


BANDS: Final[tuple[Band, ...]] = (
    Band(lower=1, upper=1, prior=0.5062),
    Band(lower=2, upper=4, prior=0.4161),
    Band(lower=5, upper=9, prior=0.1370),
    Band(lower=10, upper=24, prior=0.0759),
    Band(lower=25, upper=49, prior=0.0914),
    Band(lower=50, upper=99, prior=0.0714),
    Band(lower=100, upper=None, prior=0.0124),
)


def band_of(scored: int) -> Band:
    """The band of a lesson with `scored` scored retrievals. Raises ValueError below 1: nothing scored, no band."""
    for band in BANDS:
        if band.lower <= scored and (band.upper is None or scored <= band.upper):
            return band
    raise ValueError(f"A lesson needs at least one scored retrieval to have a band, not {scored}.")


def live_rate(*, prior: float, losses: int, scored: int) -> float:
    """A band's loss rate in this store, in (0, 1): the mean of a Beta prior worth `PRIOR_WEIGHT` retrievals, updated.

    `losses` of `scored` retrievals are those of the band's lessons without the one being judged. Raises ValueError
    unless 0 <= losses <= scored and 0 < prior < 1.
    """
    _require_rate(prior)
    if not 0 <= losses <= scored:
        raise ValueError(f"{losses} losses of {scored} scored retrievals cannot be.")
    return (losses + PRIOR_WEIGHT * prior) / (scored + PRIOR_WEIGHT)


def rate_without(*, band: Band, losses: int, scored: int, own_losses: int, own_scored: int) -> float:
    """A band's live rate without the judged lesson, in (0, 1).

    `losses` of `scored` retrievals were measured in the band, `own_losses` of `own_scored` are the lesson's today. It
    may have come into the band since the measurement: what is left never goes below zero, nor losses above retrievals.
    """
    left = max(0, losses - own_losses)
    return live_rate(prior=band.prior, losses=left, scored=max(left, scored - own_scored))


def losses_needed(rate: float, p: float = 0.01) -> float:
    """The share of losses x at which rate ** x falls to `p`: ln p / ln rate. Raises ValueError outside (0, 1)."""
    _require_rate(rate)
    _require_rate(p)
    return math.log(p) / math.log(rate)


def _require_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise ValueError(f"A rate lies strictly between 0 and 1, not at {rate}.")
