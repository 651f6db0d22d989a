"""Half an hour at half of what it bears: does anything grow that should not, is anything lost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.growth import bounds
from evaluation.growth.agents import Agent, at_work
from evaluation.growth.reviewer import Reviewer, reviewing
from evaluation.growth.slope import Slope, averaged, slope
from evaluation.growth.stand import Stand, filled, parameters, started
from evaluation.growth.watch import Watch, caught_up, watching
from evaluation.report import Cell, Figure, Plot, Progress, Report, Series, Table

AGENTS: Final = 8
CALIBRATION_SECONDS: Final = 20
SHARE: Final = 0.5  # of the rate at which they work without a pause
EVERY_SECONDS: Final = 10.0  # between samples
SETTLING_SECONDS: Final = 300.0  # caches fill and pools open: the verdict begins after it
MOST_SETTLING: Final = 0.2  # of a shorter soak
AVERAGED_SECONDS: Final = 60.0
TEN_MINUTES: Final = 600.0
PATIENCE_SECONDS: Final = 600.0  # for the worker to catch up

Floats = NDArray[np.float64]

#: What must not grow, with its unit, and the most that the upper end of its growth in ten minutes may be.
FLAT: Final = (
    ("web_mb", "memory of the web process", "MB", 2.0),
    ("worker_mb", "memory of the worker", "MB", 2.0),
    ("beat_mb", "memory of the schedule", "MB", 2.0),
    ("postgresql_own_mb", "memory of PostgreSQL, what its processes share left out", "MB", 2.0),
    ("connections", "connections to PostgreSQL", "", 0.5),
    ("web_files", "open files of the web process", "", 0.5),
    ("worker_files", "open files of the worker", "", 0.5),
    ("web_threads", "threads of the web process", "", 0.5),
    ("worker_threads", "threads of the worker", "", 0.5),
)

HOW: Final = """
The product as `manage.py up` starts it, with the bundled model, on a store of its own. First agents work without a
pause, which says what the machine bears; then for the whole soak at half of that rate, each loop being a start with
retrieval, an answer and an outcome, each request under an Idempotency-Key of its own. Beside them somebody reviews:
dashboard, inbox, a lesson's evidence, a decision, with half a second between two pages. Every ten seconds the memory,
open files, threads and connections of all processes are noted. After the first five minutes, in which caches fill and
pools open, a straight line is laid through the means of each minute; flat means that the upper end of the 95% interval
of its slope stays below the bar. PostgreSQL's memory is judged without what its processes share, mostly its cache of
pages, which fills with the store and stops at `shared_buffers`; the table has it with that, counted once.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "Half an hour: what grows by less than the interval shows nothing of itself, and what happens once a day did not.",
    "The agents, the reviewer and the notes of what is held take time of the same cores.",
)


@dataclass(frozen=True, kw_only=True)
class Soaked:
    """What was seen."""

    rate: float  # loops a second without a pause
    crowd: Sequence[Agent]
    reviewer: Reviewer
    watch: Watch
    began: float  # on the monotonic clock
    seconds: float
    caught_up: float | None  # seconds until every outcome was credited, after the last one; None: PATIENCE_SECONDS were
    # too few

    @property
    def settled(self) -> float:
        """Seconds from the beginning on which the verdict rests."""
        return min(SETTLING_SECONDS, MOST_SETTLING * self.seconds)

    def growth(self, name: str) -> Slope:
        """Change in ten minutes."""
        at, seen = self.watch.series(name)
        kept = [(a, b) for a, b in zip(at, seen, strict=True) if a >= self.settled]
        return slope(*averaged([a for a, _ in kept], [b for _, b in kept], AVERAGED_SECONDS)).scaled(TEN_MINUTES)


def measure(tell: Progress) -> Report:
    """SOAK_MINUTES at half of the load that eight agents make."""
    began, minutes = time.monotonic(), bounds.number("SOAK_MINUTES")
    lessons = bounds.number("GROWTH_LESSONS")
    tell(0, minutes, f"a store of {lessons:,} lessons")
    with filled(lessons) as store, started(store) as stand:
        soaked = _soak(stand, minutes, tell)
    return Report(
        name="soak",
        title=f"Soak: {minutes} minutes at half load",
        question="Do memory, connections, files or threads grow while it works, and is anything lost?",
        answer=_answer(soaked),
        command="make growth ARGS=soak",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters={"lessons": lessons, "minutes": minutes, "agents": AGENTS, **parameters(store.machine)},
        figures=(*(_flat(soaked, *row) for row in FLAT), *_figures(soaked)),
        how=HOW,
        limits=LIMITS,
        tables=(_table(soaked),),
        plots=(_plot(soaked),),
    )


def _soak(stand: Stand, minutes: int, tell: Progress) -> Soaked:
    tell(0, minutes, "what it bears")
    rate = _bears(stand)
    crowd, reviewer = stand.agents(AGENTS), stand.reviewer()
    with watching(stand.running, EVERY_SECONDS) as watch:
        caught_up(watch, PATIENCE_SECONDS)
        began = time.monotonic()
        with reviewing(reviewer), at_work(crowd, every=AGENTS / (rate * SHARE)):
            for minute in range(minutes):
                tell(minute, minutes, f"{rate * SHARE:.1f} loops a second")
                time.sleep(max(0.0, began + 60 * (minute + 1) - time.monotonic()))
        seconds = time.monotonic() - began
        waited = caught_up(watch, PATIENCE_SECONDS)
    return Soaked(
        rate=rate, crowd=crowd, reviewer=reviewer, watch=watch, began=began, seconds=seconds, caught_up=waited
    )


def _bears(stand: Stand) -> float:
    """Loops a second of agents who make no pause."""
    crowd, began = stand.agents(AGENTS), time.monotonic()
    with at_work(crowd):
        time.sleep(CALIBRATION_SECONDS)
    return sum(agent.loops for agent in crowd) / (time.monotonic() - began)


def _flat(soaked: Soaked, name: str, what: str, unit: str, most: float) -> Figure:
    grown = soaked.growth(name)
    return Figure(
        key=f"soak.{name}",
        label=f"{what}, growth in ten minutes",
        value=round(grown.value, 3),
        low=round(grown.low, 3),
        high=round(grown.high, 3),
        unit=unit,
        bar=f"flat: upper end below {most:g} {unit}".strip(),
        met=grown.high < most,
    )


def _figures(soaked: Soaked) -> list[Figure]:
    errors = [each for agent in soaked.crowd for each in agent.errors] + soaked.reviewer.errors
    left = soaked.watch.samples[-1].values["uncredited"]
    loops = sum(agent.loops for agent in soaked.crowd)
    late = np.array([at for agent in soaked.crowd for at in agent.began]) - soaked.began
    starts = np.array([seconds for agent in soaked.crowd for seconds in agent.starts]) * 1000
    ends = {"first": starts[late < soaked.seconds / 6], "last": starts[late > soaked.seconds * 5 / 6]}
    looks = np.array([seconds for each in soaked.reviewer.seconds.values() for seconds in each]) * 1000
    return [
        Figure(key="soak.errors", label=f"errors{_first_of(errors)}", value=len(errors), bar="0", met=not errors),
        Figure(key="soak.uncredited", label="outcomes not credited at the end", value=left, bar="0", met=left == 0),
        _told("caught_up", "from the last outcome until all were credited", soaked.caught_up, "s"),
        _told("bears", f"loops without a pause, {AGENTS} agents", soaked.rate, "a second"),
        _told("loops", "loops of the soak", loops / soaked.seconds, "a second"),
        *(
            _told(f"start.{name}_p{share}", f"start, {share} of 100 within, {name} sixth", _within(taken, share), "ms")
            for name, taken in ends.items()
            for share in (50, 95)
        ),
        *(
            _told(f"page_p{share}", f"a page of the reviewer, {share} of 100 within", _within(looks, share), "ms")
            for share in (50, 95)
        ),
    ]


def _told(key: str, label: str, value: float | None, unit: str) -> Figure:
    return Figure(key=f"soak.{key}", label=label, value=None if value is None else _tenth(value), unit=unit)


def _within(taken: Floats, share: int) -> float:
    return float(np.percentile(taken, share))


def _tenth(value: float) -> float:
    return round(value, 1)


def _first_of(errors: Sequence[str]) -> str:
    return f", the first: {errors[0]}" if errors else ""


def _answer(soaked: Soaked) -> str:
    grows = [what for name, what, _, most in FLAT if soaked.growth(name).high >= most]
    errors = sum(len(agent.errors) for agent in soaked.crowd) + len(soaked.reviewer.errors)
    loops = sum(agent.loops for agent in soaked.crowd)
    told = "nothing that should not grow did" if not grows else f"not shown to be flat: {'; '.join(grows)}"
    return f"In {loops:,} loops and {soaked.reviewer.decided:,} decisions there were {errors} errors, and {told}."


def _table(soaked: Soaked) -> Table:
    names = ("web_mb", "worker_mb", "beat_mb", "postgresql_mb", "postgresql_own_mb", "connections", "web_files",
             "web_threads", "worker_threads", "uncredited", "undistilled", "interactions", "database_mb")  # fmt: skip
    step = soaked.seconds / 6
    samples = [min(soaked.watch.samples, key=lambda each: abs(each.at - step * n)) for n in range(7)]
    return Table(
        title="What was held",
        columns=("minute", "web, MB", "worker, MB", "schedule, MB", "PostgreSQL, MB", "of it not shared, MB",
                 "connections", "files of web", "threads of web", "threads of worker", "outcomes to credit",
                 "answers to distil", "interactions", "database, MB"),
        rows=tuple((_tenth(each.at / 60), *(_cell(each.values[name]) for name in names)) for each in samples),
    )  # fmt: skip


def _plot(soaked: Soaked) -> Plot:
    """The mean of each minute, which the lines are laid through."""
    named = {
        "web_mb": "web",
        "worker_mb": "worker",
        "beat_mb": "schedule",
        "postgresql_own_mb": "PostgreSQL, not shared",
    }
    series = []
    for name, label in named.items():
        at, seen = averaged(*soaked.watch.series(name), AVERAGED_SECONDS)
        x, y = tuple(_tenth(each / 60) for each in at), tuple(map(_tenth, seen))
        series.append(Series(label=label, x=x, y=y))
    return Plot(title="Memory", kind="lines", x_label="minutes", y_label="MB", series=tuple(series))


def _cell(value: float) -> Cell:
    return int(value) if value == int(value) else _tenth(value)
