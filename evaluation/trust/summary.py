"""The operating characteristics of a policy in a world: its runs drawn together, each with its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.trust.measures import SERVINGS, Measures, durations
from evaluation.trust.policies import NONE, ORACLE
from evaluation.trust.statistics import Estimate, mean, median_time, ratio

Runs = Sequence[Measures]
#: Share of an oracle's gain below which (in points) there is nothing to take a share of.
LEAST_GAIN: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Shares in %, gains in points of success."""

    success: Estimate
    gain: Estimate  # success above that without a policy, same seeds
    share: Estimate  # of the oracle's gain
    precision: Estimate  # share of quarantines that hit a harmful lesson
    recall10: Estimate  # of harmful lessons with 10 harmful servings, how many were ever quarantined while harmful
    recall30: Estimate
    prevented: Estimate  # share of harmful servings that did not happen
    false_rate: Estimate  # wrong quarantines per 1,000 evaluations of good lessons
    false_ever: Estimate  # good lessons ever quarantined
    false_rare: Estimate  # of the rarely served ones on hard tasks
    false_together: Estimate  # of those often served beside a harmful one
    withheld: Estimate  # servings of good lessons that the coin or a quarantine withheld
    tested: Estimate  # good lessons that the coin ever left out
    delay: float | None  # median harmful servings until quarantine, the never found counted; None: over half are not
    wrong_days: float | None  # median days until a wrong quarantine ends; None: over half do not
    wrong_ended: Estimate  # wrong quarantines that ended within the run
    right_ended: Estimate  # right ones that did


def summarise(runs: Mapping[str, Runs], policy: str) -> Summary:
    """One policy in one world; `runs` holds each policy's runs in the order of seeds."""
    own, none, oracle = runs[policy], runs[NONE], runs[ORACLE]
    gains = [100 * (m.success - base.success) for m, base in zip(own, none, strict=True)]
    possible = [100 * (m.success - base.success) for m, base in zip(oracle, none, strict=True)]
    delays = [delay for m in own for delay in m.delays]
    wrong_days, wrong_ended = _stays(own, right=False)
    return Summary(
        success=_percent(own, lambda m: m.success),
        gain=mean(gains),
        share=scaled(ratio(gains, possible)) if sum(possible) / len(possible) > LEAST_GAIN else Estimate(value=None),
        precision=scaled(ratio([m.right for m in own], [m.right + m.wrong for m in own])),
        recall10=_percent(own, lambda m: m.recall[SERVINGS.index(10)]),
        recall30=_percent(own, lambda m: m.recall[SERVINGS.index(30)]),
        prevented=_percent(own, lambda m: m.prevented, lowest=-100),
        false_rate=mean([1000 * m.wrong / max(1, m.evaluations) for m in own], lowest=0),
        false_ever=_percent(own, lambda m: m.false_ever),
        false_rare=_percent(own, lambda m: m.false_rare),
        false_together=_percent(own, lambda m: m.false_together),
        withheld=_percent(own, lambda m: m.withheld_coin + m.withheld_quarantine, highest=1000),
        tested=_percent(own, lambda m: m.tested),
        delay=median_time([servings for servings, _ in delays], [found for _, found in delays]),
        wrong_days=wrong_days,
        wrong_ended=wrong_ended,
        right_ended=_stays(own, right=True)[1],
    )


def scaled(estimate: Estimate, by: float = 100) -> Estimate:
    """The same in another unit."""
    parts = (None if part is None else by * part for part in (estimate.value, estimate.low, estimate.high))
    value, low, high = parts
    return Estimate(value=value, low=low, high=high)


def _percent(runs: Runs, pick: Callable[[Measures], float], lowest: float = 0, highest: float = 100) -> Estimate:
    return mean([100 * pick(m) for m in runs], lowest=lowest, highest=highest)


def _stays(runs: Runs, *, right: bool) -> tuple[float | None, Estimate]:
    """Median days, and the share that ended."""
    each = [durations(m.stays, right=right) for m in runs]
    days, ended = [day for days, _ in each for day in days], [end for _, ends in each for end in ends]
    share = ratio([sum(ends) for _, ends in each], [len(ends) for _, ends in each])
    return median_time(days, ended), scaled(share)
