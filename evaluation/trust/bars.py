"""The figures that answer the question, and the bars that they are held against."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluation.report import Figure
from evaluation.trust.policies import REFERENCE, TRIAL
from evaluation.trust.statistics import Estimate
from evaluation.trust.summary import Summary

Summaries = Mapping[str, Mapping[str, Summary]]  # world, policy


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One number that is asked of a policy in some worlds."""

    key: str
    label: str
    pick: Callable[[Summary], Estimate]
    unit: str = "%"
    least: Mapping[str, float]  # world -> the value that it should reach at least
    most: Mapping[str, float]  # world -> the value that it should not exceed


def _asked(
    key: str,
    label: str,
    pick: Callable[[Summary], Estimate],
    *,
    unit: str = "%",
    least: Mapping[str, float] | None = None,
    most: Mapping[str, float] | None = None,
) -> Asked:
    return Asked(key=key, label=label, pick=pick, unit=unit, least=least or {}, most=most or {})


ASKED: Final = (
    _asked("gain", "share of the oracle's gain", lambda s: s.share, least={"base": 40, "large": 50, "live-like": 8}),
    _asked("precision", "quarantines that are right", lambda s: s.precision, least={"base": 78, "large": 78}),
    _asked(
        "false_rate", "false quarantines", lambda s: s.false_rate, unit="per 1,000 evaluations",
        most={"base": 0.05, "large": 0.05},
    ),
    _asked(
        "false_together", "good lessons often served beside a harmful one that were ever quarantined",
        lambda s: s.false_together, most={"base": 0.7, "large": 0.7},
    ),
    _asked("false_ever", "lessons ever quarantined", lambda s: s.false_ever, most={"null": 0.4}),
    _asked(
        "withheld", "servings of good lessons withheld", lambda s: s.withheld,
        most={"base": 2, "large": 2, "live-like": 2, "null": 2},
    ),
)  # fmt: skip
PREVALENCES: Final[Mapping[str, float]] = {"1%-harmful": 1, "base": 5, "15%-harmful": 15}  # world -> % of lessons


def figures(summaries: Summaries) -> tuple[Figure, ...]:
    """Those of the worlds that were played, first the default policy's and their bars, then the reference policy's."""
    return (*_with_bars(summaries), *_by_prevalence(summaries), *_of_reference(summaries))


def _with_bars(summaries: Summaries) -> Iterator[Figure]:
    for asked in ASKED:
        for world in (*asked.least, *asked.most):
            if TRIAL not in summaries.get(world, {}):
                continue
            estimate = asked.pick(summaries[world][TRIAL])
            least, most = asked.least.get(world), asked.most.get(world)
            yield _figure(
                f"{world}.{asked.key}",
                f"{world}: {asked.label}",
                estimate,
                unit=asked.unit,
                bar=_in_words(least, most, asked.unit),
                met=holds(estimate, least=least, most=most),
            )


def _by_prevalence(summaries: Summaries) -> Iterator[Figure]:
    for world, percent in PREVALENCES.items():
        if world != "base" and TRIAL in summaries.get(world, {}):
            label = f"quarantines that are right where {percent:g}% of lessons do harm"
            yield _figure(f"{world}.precision", label, summaries[world][TRIAL].precision)


def _of_reference(summaries: Summaries) -> Iterator[Figure]:
    for world in ("base", "large"):
        if REFERENCE in summaries.get(world, {}):
            told = summaries[world][REFERENCE]
            yield _figure(f"{world}.reference.gain", f"{world}: share of the oracle's gain, reference", told.share)
            yield _figure(
                f"{world}.reference.precision", f"{world}: quarantines that are right, reference", told.precision
            )


def holds(estimate: Estimate, *, least: float | None, most: float | None) -> bool | None:
    """Whether a bar is met within the 95% interval: it is missed where all of the interval lies on its wrong side."""
    if estimate.value is None:
        return None
    high = estimate.value if estimate.high is None else estimate.high
    low = estimate.value if estimate.low is None else estimate.low
    return (least is None or high >= least) and (most is None or low <= most)


def _in_words(least: float | None, most: float | None, unit: str) -> str:
    sign = "%" if unit == "%" else ""
    return f"at least {least:g}{sign}" if least is not None else f"at most {most:g}{sign}"


def _figure(
    key: str, label: str, estimate: Estimate, *, unit: str = "%", bar: str = "", met: bool | None = None
) -> Figure:
    return Figure(
        key=key, label=label, value=estimate.value, low=estimate.low, high=estimate.high, unit=unit, bar=bar, met=met
    )
