"""A record in plain words: counts first, a probability only where there are enough servings for one to mean something.

Everything here describes. What moves a lesson is its policy's own rule (`memory.rules.ledger`,
`memory.rules.quarantine`), and no figure of this module takes part in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from memory.rules.attribution import TOLERANCE
from memory.rules.health import Interval, wilson
from memory.rules.ledger import ENOUGH
from memory.rules.words import count

#: Terms of a sum below this part of it change no digit of a double.
_NEGLIGIBLE: Final = 1e-17
_MILLION: Final = 1_000_000

UNSERVED: Final = "Nobody has judged a serving of it yet, so there is no loss rate to describe."


def upper_tail(losses: int, n: int, rate: float) -> float:
    """P(X >= losses) for X binomial(n, rate), in [0, 1].

    The exact sum, on the side of the mean where its terms fall, so that a tiny tail keeps its digits: relative error
    below 1e-7 up to n = 10**7. Raises ValueError unless 0 <= losses <= n and 0 <= rate <= 1.
    """
    if not 0 <= losses <= n or not 0 <= rate <= 1:
        raise ValueError(f"{losses} of {n} at the rate {rate} cannot be.")
    if losses == 0 or rate == 1:
        return 1.0
    if rate == 0:
        return 0.0
    if losses > n * rate:
        return min(1.0, _falling(losses, n, rate))
    # Below the mean the other side is the short one: losses - 1 or fewer losses are n - losses + 1 or more wins.
    return max(0.0, 1.0 - _falling(n - losses + 1, n, 1 - rate))


def _falling(k: int, n: int, rate: float) -> float:
    """P(X >= k) where k lies above the mean: each term is smaller than the one before it."""
    log_first = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(rate)
        + ((n - k) * math.log1p(-rate) if k < n else 0.0)
    )
    term = total = 1.0  # in units of the first term
    for i in range(k, n):
        term *= (n - i) / (i + 1) * (rate / (1 - rate))
        total += term
        if term < _NEGLIGIBLE * total:
            break
    return math.exp(log_first + math.log(total))


def enough_servings(n: int, rate: float) -> bool:
    """Whether at least 5 losses and 5 wins were to be expected: below that a probability says too little to be shown.

    Source: the usual n*p rule for counts (Cochran, The chi-square test of goodness of fit, Annals of Mathematical
    Statistics 23, 1952).
    """
    # 25 * 0.2 is 5, whichever way a rate such as 0.2 was rounded on its way here.
    return min(n * rate, n * (1 - rate)) >= ENOUGH - TOLERANCE


def one_in(p: float) -> str:
    """A probability as a natural frequency: `about 1 time in 128`, `about 6 times in 10`.

    Raises ValueError unless 0 <= p <= 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"A probability lies between 0 and 1, not at {p}.")
    if p == 1:
        return "every time"
    if p >= 0.95:
        return "almost every time"
    if p >= 0.35:
        return f"about {round(10 * p)} times in 10"
    if p * _MILLION < 1:
        return "less than 1 time in a million"
    times = round(1 / p)
    return f"about 1 time in {times if times < 1000 else int(float(f'{times:.2g}')):,}"


def percent(p: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """`35%`; two digits where a whole number would hide that it is not 0 or 1: `0.56%`, `99.9996%`.

    Raises ValueError unless 0 <= p <= 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"A share lies between 0 and 1, not at {p}.")
    value = 100 * Decimal(f"{p:.12g}")  # what lies behind is noise, which no rounding may blow up to a whole percent
    distance = min(value, 100 - value)
    unit = Decimal(1).scaleb(distance.adjusted() - 1) if 0 < distance < 1 else Decimal(1)
    shown = f"{value.quantize(unit, rounding=rounding):f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown}%"


def span(interval: Interval) -> str:
    """`22% to 51%`: rounded outwards, so that what is shown covers what was computed."""
    return f"{percent(interval.low, ROUND_FLOOR)} to {percent(interval.high, ROUND_CEILING)}"


def probability(p: float) -> str:
    """`0.0078`: two digits, whatever the size; `below 0.000001` where nobody would count the zeros."""
    if p * _MILLION < 1:
        return "below 0.000001"
    return f"{Decimal(f'{p:.2g}'):f}"


@dataclass(frozen=True, kw_only=True)
class Description:
    """What can be said about a lesson's losses against what similar work loses without it."""

    losses: int  # lost servings
    n: int  # judged servings
    base_rate: float  # share that similar work loses without it, in [0, 1]
    expected: float  # n * base_rate
    enough: bool  # at least 5 losses and 5 wins were to be expected
    p_value: float | None  # P(this many losses or more) if the lesson did nothing; None without enough servings
    interval: Interval  # plausible loss rates, Wilson 95%; all of [0, 1] without servings
    sentences: tuple[str, ...]  # the verdict in words, one to five sentences

    @property
    def words(self) -> str:
        return " ".join(self.sentences)


def describe(*, losses: int, n: int, base_rate: float, rests_on: str = "") -> Description:
    """The verdict on `losses` of `n` judged servings where similar work loses the share `base_rate`.

    The servings must not have been chosen for their losses: of the most incriminating stretch of a record every
    probability is too small. `rests_on` says in a noun phrase what the base rate was counted on. Raises ValueError
    unless 0 <= losses <= n and 0 <= base_rate <= 1.
    """
    tail = upper_tail(losses, n, base_rate)
    enough = enough_servings(n, base_rate)
    interval = wilson(losses, n)
    sentences = (
        f"Served {_times(n)}, {_losses(losses)}.",
        f"Similar interactions without it {_usual(n, base_rate)}.",
        f"That rests on {rests_on}." if rests_on else "",
        _surprise(losses, tail) if enough else _too_few(n, base_rate),
        f"Plausible loss rate with it: {span(interval)} (95% Wilson).",
    )
    return Description(
        losses=losses,
        n=n,
        base_rate=base_rate,
        expected=n * base_rate,
        enough=enough,
        p_value=tail if enough else None,
        interval=interval,
        sentences=tuple(sentence for sentence in sentences if sentence) if n else (UNSERVED,),
    )


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _losses(n: int) -> str:
    return f"{n:,} {'loss' if n == 1 else 'losses'}"


def _usual(n: int, rate: float) -> str:
    if rate in (0, 1):
        return "always lose" if rate else "never lose"
    usual = round(n * rate)
    return f"lose about {usual:,} in {n:,}" if usual else f"lose {one_in(rate)}"


def _surprise(losses: int, tail: float) -> str:
    if losses == 0:
        return "It lost nothing, so there is nothing to explain."
    return (
        f"If the lesson did nothing, {losses:,} or more losses would happen {one_in(tail)} "
        f"(exact binomial, p {'' if tail * _MILLION < 1 else '= '}{probability(tail)})."
    )


def _too_few(n: int, rate: float) -> str:
    losses, wins = quantity(n * rate), quantity(n * (1 - rate))
    expected = f"{losses} {'loss' if losses == '1' else 'losses'} and {wins} {'win' if wins == '1' else 'wins'}"
    return (
        f"Too few servings: {expected} were to be expected, and below {ENOUGH:g} of each a probability would mislead."
    )


def quantity(value: float) -> str:
    """An expected count: `4`, `4.2`, `1,280`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def describe_evidence(evidence: Mapping[str, Any]) -> Description | None:
    """The verdict on a lesson's whole record, from the evidence of either policy; None if it knows no base rate.

    Under `trial` the base rate is the mean expected loss of the rows in the evidence, under `reference` the rate of
    the band.
    """
    losses, n = evidence["losses"], evidence["wins"] + evidence["losses"]
    if evidence["policy"] == "reference":
        band = evidence["band"]
        rests_on = f"lessons that were judged {_band(band['lower'], band['upper'])}"
        return describe(losses=losses, n=n, base_rate=band["rate"], rests_on=rests_on)
    shown = evidence["with_it"]
    if not shown["n"]:
        return None
    rests_on = f"what was expected, without this lesson, of {count(shown['n'], 'serving')} in its ledger"
    # A mean of probabilities may leave [0, 1] by rounding.
    rate = min(1.0, max(0.0, shown["expected"] / shown["n"]))
    return describe(losses=losses, n=n, base_rate=rate, rests_on=rests_on)


def _band(lower: int, upper: int | None) -> str:
    if upper is None:
        return f"{lower} or more times"
    return _times(lower) if lower == upper else f"{lower} to {upper} times"
