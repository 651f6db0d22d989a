"""How likely an interaction was to be lost if the lesson in question did nothing.

The expected loss starts at the judge's usual loss rate and is multiplied, as odds, by what is known of the task, of the
other lessons handed out and of the same kind of work when the lesson was left out. Each factor is a ratio of observed
to expected losses, shrunk towards 1 by a constant added to both (the posterior mean of a Gamma prior with mean 1,
Gelman et al., Bayesian Data Analysis, 2.7), and every count leaves out the interactions in which the judged lesson took
part: it can neither excuse nor accuse itself.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

#: Decimal places of a stored probability. Stored values are exact, so sums of them leave no residue when a row is
#: subtracted again; twelve places keep a rounding error below anything a decision could notice.
PLACES: Final = Decimal("1e-12")

_CONTEXT: Final = Context(prec=34, rounding=ROUND_HALF_EVEN)

#: How far below zero a tally may lie before it is refused: rounding of a caller that keeps its sums as floats.
_SLACK: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class ExpectationConstants:
    """Priors and limits of the expected loss."""

    prior_loss: float = 0.20  # loss rate of a judge nobody has heard yet
    rate_weight: float = 10.0  # interactions that prior is worth: a judge's own rate takes over after a dozen
    task_weight: float = 2.0  # expected losses the task's factor 1 is worth: few, since a task is narrow
    peer_weight: float = 3.0  # the same for the peers' factor
    peer_cap: float = 10.0  # most expected losses one peer may speak with, so that no old lesson drowns the others
    niche_weight: float = 3.0  # the same as task_weight for the factor of the work without the lesson
    lowest: float = 0.05  # no loss is quite unexpected: a single one must not convict
    highest: float = 0.95  # nor quite certain: a loss must always count a little

    def __post_init__(self) -> None:
        if not 0 < self.prior_loss < 1:
            raise ValueError("The prior loss rate must lie strictly between 0 and 1.")
        if min(self.rate_weight, self.task_weight, self.peer_weight, self.peer_cap, self.niche_weight) <= 0:
            raise ValueError("Every weight, and the cap of a peer, must be positive.")
        if not 0 < self.lowest < self.highest < 1:
            raise ValueError("The limits must satisfy 0 < lowest < highest < 1.")


DEFAULTS: Final = ExpectationConstants()


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Losses that were observed and losses that were expected over the same interactions."""

    observed: Decimal | float = 0  # sum of (weighted) losses, >= 0
    expected: Decimal | float = 0  # sum of (weighted) baseline or expected losses, >= 0

    def __post_init__(self) -> None:
        if self.observed < -_SLACK or self.expected < -_SLACK:
            raise ValueError(f"A tally cannot be negative: {self.observed} observed, {self.expected} expected.")

    def without(self, own: "Tally") -> "Tally":
        """This tally less the part `own`: for decimals the exact sum over the other interactions."""
        return Tally(
            observed=_CONTEXT.subtract(Decimal(self.observed), Decimal(own.observed)),
            expected=_CONTEXT.subtract(Decimal(self.expected), Decimal(own.expected)),
        )


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """The expected loss of one lesson in one interaction, and the factors it is made of."""

    rate: float  # the judge's loss rate over interactions without this lesson, in (0, 1)
    task_factor: float  # how much harder the task is than its judges' rates say, >= 1
    peer_factor: float  # how much more (or less) the other lessons of the cohort lose than expected, > 0
    niche_factor: float  # how much more the work is lost than expected when this lesson is left out, >= 1
    expected_loss: float  # probability of a loss if this lesson does nothing, within the constants' limits


def rate(*, losses: int, n: int, constants: ExpectationConstants = DEFAULTS) -> float:
    """A judge's loss rate, in (0, 1): the mean of a Beta prior updated by `losses` of `n` interactions.

    Raises ValueError unless 0 <= losses <= n.
    """
    _require_counts(losses, n)
    return (losses + constants.rate_weight * constants.prior_loss) / (n + constants.rate_weight)


def baseline(*, losses: int, n: int, constants: ExpectationConstants = DEFAULTS) -> Decimal:
    """b, the same rate over all of a judge's interactions so far, as it is stored: 12 places, half to even."""
    _require_counts(losses, n)
    weight = Decimal(repr(constants.rate_weight))
    prior = _CONTEXT.multiply(weight, Decimal(repr(constants.prior_loss)))
    quotient = _CONTEXT.divide(_CONTEXT.add(Decimal(losses), prior), _CONTEXT.add(Decimal(n), weight))
    return quotient.quantize(PLACES, context=_CONTEXT)


def to_stored(e: float) -> Decimal:
    """A probability as it is stored: 12 places, half to even. Raises ValueError outside (0, 1)."""
    if not 0 < e < 1:
        raise ValueError(f"An expected loss lies strictly between 0 and 1, not at {e}.")
    return Decimal(e).quantize(PLACES, context=_CONTEXT)


def task_factor(o: Decimal | float, e: Decimal | float, constants: ExpectationConstants = DEFAULTS) -> float:
    """max(1, (O + 2) / (E + 2)) over the task's interactions without the lesson. An easy task excuses nobody."""
    return max(1.0, _shrunk(float(o), float(e), constants.task_weight))


def peer_factor(peers: Iterable[Tally], constants: ExpectationConstants = DEFAULTS) -> float:
    """(sum o + 3) / (sum e + 3) over the other lessons handed out, each scaled so that its e is at most 10.

    Each tally leaves out the interactions shared with the judged lesson. Correctly rounded sums make the factor
    independent of the peers' order; without peers it is 1.
    """
    scaled = [_scaled(peer, constants.peer_cap) for peer in peers]
    return _shrunk(math.fsum(o for o, _ in scaled), math.fsum(e for _, e in scaled), constants.peer_weight)


def niche_factor(o: Decimal | float, e: Decimal | float, constants: ExpectationConstants = DEFAULTS) -> float:
    """max(1, (Ow + 3) / (Ew + 3)) over the interactions that left the lesson out.

    Losses without the lesson excuse it; wins without it do not accuse it a second time.
    """
    return max(1.0, _shrunk(float(o), float(e), constants.niche_weight))


def expected_loss(
    *,
    losses: int,
    n: int,
    task: Tally,
    peers: Iterable[Tally],
    niche: Tally,
    constants: ExpectationConstants = DEFAULTS,
) -> Expectation:
    """The expected loss of a lesson that was handed out.

    `losses` of `n` are the judge's interactions and `task` the task's, both without those that had the lesson in the
    cohort; `peers` holds one tally for each other lesson of the cohort, without the interactions it shared with this
    one; `niche` counts the interactions that left the lesson out. odds(e) is the product of odds(rate) and the three
    factors, with e kept within the constants' limits.
    """
    return _combine(
        rate(losses=losses, n=n, constants=constants),
        task_factor(task.observed, task.expected, constants),
        peer_factor(peers, constants),
        niche_factor(niche.observed, niche.expected, constants),
        constants,
    )


def withheld_expectation(
    *, losses: int, n: int, task: Tally, constants: ExpectationConstants = DEFAULTS
) -> Expectation:
    """The expected loss of an interaction that left the lesson out: peers and niche do not enter (both factors 1).

    The niche factor is made of these rows; it must not feed on itself.
    """
    return _combine(
        rate(losses=losses, n=n, constants=constants),
        task_factor(task.observed, task.expected, constants),
        1.0,
        1.0,
        constants,
    )


def _combine(base: float, task: float, peers: float, niche: float, constants: ExpectationConstants) -> Expectation:
    odds = base / (1 - base) * task * peers * niche
    e = min(constants.highest, max(constants.lowest, odds / (1 + odds)))
    return Expectation(rate=base, task_factor=task, peer_factor=peers, niche_factor=niche, expected_loss=e)


def _shrunk(observed: float, expected: float, weight: float) -> float:
    return (observed + weight) / (expected + weight)


def _scaled(peer: Tally, cap: float) -> tuple[float, float]:
    o, e = float(peer.observed), float(peer.expected)
    return (o * cap / e, cap) if e > cap else (o, e)


def _require_counts(losses: int, n: int) -> None:
    if not 0 <= losses <= n:
        raise ValueError(f"{losses} losses of {n} interactions cannot be.")
