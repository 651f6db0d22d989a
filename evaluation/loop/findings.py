"""From what the arms came to, seed by seed, to figures with intervals."""

from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.loop.agent import Played
from evaluation.loop.arms import ARMS, LOOP, NEITHER, RETRIEVAL
from evaluation.report import Figure, Plot, Series, Table
from evaluation.trust.statistics import Estimate, mean, ratio

WINDOWS: Final = 10
BAR: Final = "interval above 0"
Run = Mapping[str, Played]  # what each arm came to with one seed


def figures(runs: Sequence[Run]) -> tuple[Figure, ...]:
    """The gains first, then the rates that they are differences of, then what trust decided."""
    return (
        _gain(runs, "last_third", "the whole loop over retrieval without trust, last third", RETRIEVAL, third=True),
        _gain(runs, "overall", "the whole loop over retrieval without trust, overall", RETRIEVAL),
        _gain(runs, "over_none_last_third", "the whole loop over no lessons, last third", NEITHER, third=True),
        _gain(runs, "over_none", "the whole loop over no lessons, overall", NEITHER),
        *(_rate(runs, arm) for arm in ARMS),
        _harm(runs, RETRIEVAL),
        _harm(runs, LOOP),
        *_decisions(runs),
    )


def share(won: Sequence[int]) -> float:
    """Percent of the work that succeeded."""
    return 100 * sum(won) / len(won)


def last_third(values: Sequence[int]) -> Sequence[int]:
    return values[len(values) * 2 // 3 :]


def gain(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """Percentage points that one arm succeeds more often with the same work than another."""
    return 100 * (sum(ours) - sum(theirs)) / len(ours)


def _gain(runs: Sequence[Run], key: str, label: str, against: str, *, third: bool = False) -> Figure:
    part = last_third if third else list[int]
    found = mean([gain(part(run[LOOP].won), part(run[against].won)) for run in runs])
    met = None if found.low is None else found.low > 0
    return _figure(f"gain.{key}", label, found, "points", bar=BAR if met is not None else "", met=met)


def _rate(runs: Sequence[Run], arm: str) -> Figure:
    found = mean([share(last_third(run[arm].won)) for run in runs], lowest=0, highest=100)
    return _figure(f"{arm}.success", f"work that succeeds with {ARMS[arm].label}, last third", found, "%")


def _harm(runs: Sequence[Run], arm: str) -> Figure:
    found = mean([100 * sum(part) / len(part) for run in runs for part in [last_third(run[arm].harmful)]], lowest=0)
    label = f"harmful lessons handed out in 100 interactions with {ARMS[arm].label}, last third"
    return _figure(f"{arm}.harmful", label, found, "")


def _decisions(runs: Sequence[Run]) -> tuple[Figure, ...]:
    loops = [run[LOOP] for run in runs]
    right = ratio([100 * played.right for played in loops], [played.quarantines for played in loops])
    caught = ratio([100 * played.caught for played in loops], [played.bad for played in loops])
    good = [played.withheld_good + played.served_good for played in loops]
    withheld = ratio([100 * played.withheld_good for played in loops], good)
    return (
        _figure("precision", "quarantines that hit a harmful lesson", right, "%"),
        _figure("recall", "harmful lessons in the store that are in quarantine at the end", caught, "%"),
        _figure("withheld", "servings of harmless lessons that were held back", withheld, "%"),
    )


def _figure(key: str, label: str, found: Estimate, unit: str, *, bar: str = "", met: bool | None = None) -> Figure:
    return Figure(key=key, label=label, value=found.value, low=found.low, high=found.high, unit=unit, bar=bar, met=met)


def windows(values: Sequence[int]) -> list[Sequence[int]]:
    """The values in as many stretches of equal length as there are windows; each has at least one."""
    n = min(WINDOWS, len(values))
    return [values[len(values) * i // n : len(values) * (i + 1) // n] for i in range(n)]


def curves(runs: Sequence[Run]) -> tuple[Plot, ...]:
    """Success and harm over time."""
    return (
        Plot(
            title="Work that succeeds, as the agent goes on",
            kind="lines",
            x_label="interactions",
            y_label="% of a window's work",
            series=tuple(
                _series(arm, [[share(w) for w in windows(run[arm].won)] for run in runs], runs) for arm in ARMS
            ),
        ),
        Plot(
            title="Harmful lessons that are handed out",
            kind="lines",
            x_label="interactions",
            y_label="in 100 interactions",
            series=tuple(
                _series(arm, [[share(w) for w in windows(run[arm].harmful)] for run in runs], runs)
                for arm in (RETRIEVAL, LOOP)
            ),
        ),
    )


def _series(arm: str, of_seeds: Sequence[Sequence[float]], runs: Sequence[Run]) -> Series:
    """Of each window the mean over seeds, at its last interaction."""
    found = [mean(values, lowest=0) for values in zip(*of_seeds, strict=True)]
    total = len(runs[0][arm].won)
    return Series(
        label=ARMS[arm].label,
        x=tuple(float(total * (i + 1) // len(found)) for i in range(len(found))),
        y=tuple(e.value if e.value is not None else 0.0 for e in found),
        low=tuple(e.low for e in found if e.low is not None),
        high=tuple(e.high for e in found if e.high is not None),
    )


def _round(value: float | None) -> float | None:
    """Without the residue of sums of fractions, which would make a tiny number of nothing."""
    return None if value is None else round(value, 9)


def tables(runs: Sequence[Run], seeds: Sequence[int]) -> tuple[Table, ...]:
    """The windows of each arm, and what each seed's stores held at the end."""
    total = len(runs[0][LOOP].won)
    rows = []
    for i in range(min(WINDOWS, total)):
        cells = [mean([share(windows(run[arm].won)[i]) for run in runs]) for arm in ARMS]
        found = mean([gain(windows(run[LOOP].won)[i], windows(run[RETRIEVAL].won)[i]) for run in runs])
        until = total * (i + 1) // min(WINDOWS, total)
        rows.append(
            (
                f"to {until:,}",
                *(_round(cell.value) for cell in cells),
                *map(_round, (found.value, found.low, found.high)),
            )
        )
    return (
        Table(
            title="Success by window",
            columns=("interactions", *(f"{arm.label}, %" for arm in ARMS.values()), "gain, points", "from", "to"),
            rows=tuple(rows),
            note="The gain is the whole loop's over retrieval without trust, with its 95% interval over seeds.",
        ),
        Table(
            title="The stores of the whole loop at the end",
            columns=("seed", "lessons", "learned", "harmful", "in quarantine", "quarantines", "of harmful lessons"),
            rows=tuple(
                (str(seed), p.lessons, p.learned, p.bad, p.caught, p.quarantines, p.right)
                for seed, p in zip(seeds, (run[LOOP] for run in runs), strict=True)
            ),
            note="Learned: made by the product of what the agent wrote down. In quarantine: harmful ones, at the end. "
            "Quarantines: decisions of the policy, and how many of them hit a harmful lesson.",
        ),
    )
