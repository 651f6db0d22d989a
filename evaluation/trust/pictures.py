"""Tables and plots of the report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from evaluation.report import Cell, Plot, Series, Table, number
from evaluation.trust.bars import PREVALENCES, Summaries
from evaluation.trust.measures import PARTS, SERVINGS, Measures
from evaluation.trust.policies import NONE, ORACLE, POLICIES, REFERENCE, TRIAL
from evaluation.trust.statistics import Estimate, mean
from evaluation.trust.summary import Summary

Played = Mapping[str, Mapping[str, Sequence[Measures]]]  # world, policy, runs in the order of seeds

_DETECTION: Final[tuple[tuple[str, Callable[[Summary], Cell]], ...]] = (
    ("found, 10 servings %", lambda s: _told(s.recall10)),
    ("found, 30 servings %", lambda s: _told(s.recall30)),
    ("harm prevented %", lambda s: _told(s.prevented)),
    ("right %", lambda s: _told(s.precision)),
    ("false per 1,000", lambda s: _told(s.false_rate)),
    ("good ever quarantined %", lambda s: _told(s.false_ever)),
    ("rare and hard %", lambda s: _told(s.false_rare)),
    ("beside harmful %", lambda s: _told(s.false_together)),
    ("servings until found", lambda s: "never" if s.delay is None else number(s.delay)),
)
_OUTCOME: Final[tuple[tuple[str, Callable[[Summary], Cell]], ...]] = (
    ("success %", lambda s: _told(s.success)),
    ("gain, points", lambda s: _told(s.gain)),
    ("share of the oracle's %", lambda s: _told(s.share)),
    ("good servings withheld %", lambda s: _told(s.withheld)),
    ("good lessons ever tested %", lambda s: _told(s.tested)),
    ("days until a wrong one ends", lambda s: _days(s)),
    ("wrong ones ended %", lambda s: _told(s.wrong_ended)),
    ("right ones ended %", lambda s: _told(s.right_ended)),
)
_NOTES: Final = {
    "detection": "Found: harmful lessons with at least so many harmful servings that were ever quarantined. False: "
    "wrong quarantines per 1,000 counted rows of good lessons. Rare and hard: good lessons with 5 to 25 servings on "
    "tasks that are lost at least 35% of the time. Beside harmful: at least a quarter of their servings were shared "
    "with a lesson that did harm. Servings until found: the median number of harmful servings, with the never found; "
    "never: over half are not found.",
    "outcome": "Ended: quarantines that were over by the end of the run, by the policy itself; the median time counts "
    "those that were not. Tested: left out by the coin at least once.",
}


def _days(summary: Summary) -> str:
    if summary.wrong_ended.value is None:
        return "none"  # no quarantine was wrong
    return "never" if summary.wrong_days is None else number(summary.wrong_days)


def _told(estimate: Estimate) -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def tables(summaries: Summaries) -> tuple[Table, ...]:
    """Two a world: what is found, and what comes of it."""
    return tuple(table for world, policies in summaries.items() for table in _of_world(world, policies))


def _of_world(world: str, policies: Mapping[str, Summary]) -> Iterator[Table]:
    for name, columns in (("detection", _DETECTION), ("outcome", _OUTCOME)):
        rows = tuple(
            (POLICIES[policy][0], *(tell(summary) for _, tell in columns)) for policy, summary in policies.items()
        )
        head = ("policy", *(column for column, _ in columns))
        yield Table(title=f"{world}: {name}", columns=head, rows=rows, note=_NOTES[name])


def plots(played: Played, summaries: Summaries) -> tuple[Plot, ...]:
    """What the worlds that were played can show."""
    return (*_over_time(played), *_shares(summaries), *_recalls(played), *_prevalence(summaries))


def _over_time(played: Played) -> Iterator[Plot]:
    for world in ("base", "large"):
        runs = played.get(world, {})
        if TRIAL in runs:
            yield Plot(
                title=f"The work succeeds more often as harmful lessons are kept out ({world})",
                kind="lines",
                x_label="share of the run, %",
                y_label="success, %",
                series=tuple(_by_part(runs, name) for name in (NONE, REFERENCE, TRIAL, ORACLE) if name in runs),
            )


def _by_part(runs: Mapping[str, Sequence[Measures]], policy: str) -> Series:
    found = [mean([100 * m.success_by_part[i] for m in runs[policy]]) for i in range(PARTS)]
    return _series(policy, [100 * (i + 0.5) / PARTS for i in range(PARTS)], found)


def _series(policy: str, x: Sequence[float], found: Sequence[Estimate]) -> Series:
    """A policy's line; points with nothing to estimate from are left out."""
    kept = [(at, e) for at, e in zip(x, found, strict=True) if e.value is not None]
    bounded = all(e.low is not None for _, e in kept)
    return Series(
        label=POLICIES[policy][0],
        x=tuple(at for at, _ in kept),
        y=tuple(e.value or 0.0 for _, e in kept),
        low=tuple(e.low or 0.0 for _, e in kept) if bounded else (),
        high=tuple(e.high or 0.0 for _, e in kept) if bounded else (),
    )


def _shares(summaries: Summaries) -> Iterator[Plot]:
    worlds = [world for world in summaries if summaries[world].get(TRIAL) and summaries[world][TRIAL].share.value]
    if len(worlds) < 2:
        return
    yield Plot(
        title="Share of the oracle's gain, world by world",
        kind="lines",
        x_label="world",
        y_label="share of the oracle's gain, %",
        series=tuple(
            _series(policy, range(len(worlds)), [summaries[world][policy].share for world in worlds])
            for policy in ("five-in-a-row", REFERENCE, TRIAL)
            if all(policy in summaries[world] for world in worlds)
        ),
        marks=tuple((float(i), world) for i, world in enumerate(worlds)),
    )


def _recalls(played: Played) -> Iterator[Plot]:
    for world in ("base", "large"):
        runs = played.get(world, {})
        if TRIAL in runs:
            yield Plot(
                title=f"The more often a harmful lesson is served, the likelier it is found ({world})",
                kind="lines",
                x_label="harmful servings without a policy, at least",
                y_label="ever quarantined, %",
                series=tuple(_recall(runs, name) for name in ("five-in-a-row", REFERENCE, TRIAL) if name in runs),
            )


def _recall(runs: Mapping[str, Sequence[Measures]], policy: str) -> Series:
    found = [mean([100 * m.recall[i] for m in runs[policy]], lowest=0, highest=100) for i in range(len(SERVINGS))]
    return _series(policy, SERVINGS, found)


def _prevalence(summaries: Summaries) -> Iterator[Plot]:
    worlds = [world for world in PREVALENCES if TRIAL in summaries.get(world, {})]
    if len(worlds) < 2:
        return
    yield Plot(
        title="The rarer harmful lessons are, the more quarantines are wrong",
        kind="lines",
        x_label="lessons that do harm, %",
        y_label="quarantines that are right, %",
        series=tuple(
            _series(policy, [PREVALENCES[world] for world in worlds], [summaries[w][policy].precision for w in worlds])
            for policy in ("five-in-a-row", REFERENCE, TRIAL)
            if all(policy in summaries[world] for world in worlds)
        ),
    )
