"""From one agent to many, with somebody who reviews beside them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from evaluation.growth import bounds
from evaluation.growth.agents import at_work
from evaluation.growth.reviewer import reviewing
from evaluation.growth.stand import Stand, filled, parameters, started
from evaluation.growth.watch import caught_up, uncredited, watching
from evaluation.report import Cell, Figure, Progress, Report, Table

WARM_UP_SECONDS: Final = 5
EVERY_SECONDS: Final = 2.0  # between samples
PATIENCE_SECONDS: Final = 900.0  # for the worker to catch up
WEB_MB, WORKER_MB = 400.0, 350.0

HOW: Final = """
The product as `manage.py up` starts it, with the bundled model and its default settings but for the limits of requests
a minute, on a store of its own with usage, questions and a reviewer. Each agent has a key and a connection that it
keeps, and works without a pause: it starts an interaction with a task that nobody had before, so that it must be
embedded, answers, and reports an outcome, one in five of them lost; each request under an Idempotency-Key of its own.
Beside them somebody reviews: dashboard, inbox, a lesson's evidence, a decision, with half a second between two pages.
After each step the worker is given the time to credit what is left, which is measured. Agents, reviewer and notes share
the machine's cores with the product; the last column of the first table says how much of one core they took.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "Everything ran on one machine: an agent on another one leaves its share to the product.",
    "Agents at work think for seconds or minutes between two requests, so one of these stands for many of them.",
    "The answers held nothing to learn from: distilling did little.",
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What so many agents saw."""

    agents: int
    seconds: float
    starts: Sequence[float]  # seconds of each
    loops: int
    lessons: int  # handed out
    errors: Sequence[str]  # of agents and reviewer
    looks: Sequence[float]  # seconds of each page of the reviewer
    decided: int
    web_mb: float  # the most that was seen
    worker_mb: float
    connections: float
    backlog: float  # outcomes not credited when the agents stopped
    caught_up: float | None  # seconds until all were; None: PATIENCE_SECONDS were too few
    own_share: float  # of one core, that agents, reviewer and notes took

    @property
    def rate(self) -> float:
        """Retrievals a second, each with its loop."""
        return len(self.starts) / self.seconds


def measure(tell: Progress) -> Report:
    """LOAD_SECONDS with each number of LOAD_AGENTS."""
    began, crowds = time.monotonic(), bounds.numbers("LOAD_AGENTS")
    lessons, seconds = bounds.number("GROWTH_LESSONS"), bounds.number("LOAD_SECONDS")
    tell(0, len(crowds), f"a store of {lessons:,} lessons")
    steps: list[Step] = []
    with filled(lessons, agents=max(crowds)) as store, started(store) as stand:
        with at_work(stand.agents(2)):
            time.sleep(WARM_UP_SECONDS)
        for done, crowd in enumerate(crowds):
            tell(done, len(crowds), f"{crowd} agents")
            steps.append(_step(stand, crowd, seconds))
    return Report(
        name="load",
        title=f"Load: {crowds[0]} to {crowds[-1]} agents and a reviewer",
        question="How many agents does one machine serve, how long do they wait, and what does a reviewer feel of it?",
        answer=_answer(steps),
        command="make growth ARGS=load",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters={"lessons": lessons, "seconds a step": seconds, **parameters(store.machine)},
        figures=tuple(_figures(steps)),
        how=HOW,
        limits=LIMITS,
        tables=(_agents(steps), _beside(steps)),
    )


def _step(stand: Stand, crowd: int, seconds: int) -> Step:
    agents, reviewer = stand.agents(crowd), stand.reviewer()
    with watching(stand.running, EVERY_SECONDS) as watch:
        began, used = time.monotonic(), time.process_time()
        with reviewing(reviewer), at_work(agents):
            time.sleep(seconds)
        took, share = time.monotonic() - began, time.process_time() - used
        backlog = uncredited(watch)
        waited = caught_up(watch, PATIENCE_SECONDS)
    return Step(
        agents=crowd,
        seconds=took,
        starts=[each for agent in agents for each in agent.starts],
        loops=sum(agent.loops for agent in agents),
        lessons=sum(agent.lessons for agent in agents),
        errors=[each for agent in agents for each in agent.errors] + reviewer.errors,
        looks=[each for looks in reviewer.seconds.values() for each in looks],
        decided=reviewer.decided,
        web_mb=max(watch.series("web_mb")[1]),
        worker_mb=max(watch.series("worker_mb")[1]),
        connections=max(watch.series("connections")[1]),
        backlog=backlog,
        caught_up=waited,
        own_share=share / took,
    )


def _figures(steps: Sequence[Step]) -> list[Figure]:
    best = max(steps, key=lambda step: step.rate)
    errors = [each for step in steps for each in step.errors]
    web, worker = max(step.web_mb for step in steps), max(step.worker_mb for step in steps)
    first = f", the first: {errors[0]}" if errors else ""
    return [
        Figure(key="load.best", label=f"most retrievals, {best.agents} agents", value=round(best.rate, 1),
               unit="a second"),
        Figure(key="load.alone", label="retrievals of one agent", value=round(steps[0].rate, 1), unit="a second"),
        Figure(key="load.credited", label="outcomes credited while the worker catches up", value=_credited(steps),
               unit="a second"),
        Figure(key="load.errors", label=f"errors{first}", value=len(errors), bar="0", met=not errors),
        Figure(key="load.web_mb", label="most memory of the web process", value=round(web), unit="MB",
               bar=f"at most {WEB_MB:.0f} MB", met=web <= WEB_MB),
        Figure(key="load.worker_mb", label="most memory of the worker", value=round(worker), unit="MB",
               bar=f"at most {WORKER_MB:.0f} MB", met=worker <= WORKER_MB),
    ]  # fmt: skip


def _credited(steps: Sequence[Step]) -> float | None:
    """Of the step that left the most behind: nothing but the worker runs then."""
    most = max(steps, key=lambda step: step.backlog)
    return round(most.backlog / most.caught_up, 1) if most.caught_up else None


def _answer(steps: Sequence[Step]) -> str:
    best, last = max(steps, key=lambda step: step.rate), steps[-1]
    errors = sum(len(step.errors) for step in steps)
    return (
        f"{best.rate:.0f} whole loops a second with {best.agents} agents; with {last.agents} half of the starts were "
        f"answered within {np.median(last.starts) * 1000:.0f} ms, half of the reviewer's pages within "
        f"{np.median(last.looks) * 1000:.0f} ms, and there were {errors} errors."
    )


def _agents(steps: Sequence[Step]) -> Table:
    return Table(
        title="Agents",
        columns=("agents", "retrievals a second", "loops a second", "start p50, ms", "p95", "p99",
                 "lessons a start", "errors", "own share of a core"),
        rows=tuple(
            (step.agents, round(step.rate, 1), round(step.loops / step.seconds, 1), *_within(step.starts, 50, 95, 99),
             round(step.lessons / max(1, len(step.starts)), 1), len(step.errors), round(step.own_share, 2))
            for step in steps
        ),
        note="A loop is a start with retrieval, an answer and an outcome: three requests.",
    )  # fmt: skip


def _beside(steps: Sequence[Step]) -> Table:
    return Table(
        title="Beside them",
        columns=("agents", "pages seen", "decisions", "page p50, ms", "p95", "web, MB", "worker, MB", "connections",
                 "outcomes to credit at the end", "seconds until all were credited"),
        rows=tuple(
            (step.agents, len(step.looks), step.decided, *_within(step.looks, 50, 95), round(step.web_mb),
             round(step.worker_mb), int(step.connections), int(step.backlog),
             None if step.caught_up is None else round(step.caught_up, 1))
            for step in steps
        ),
        note="Memory and connections are the most that was seen; connections are those of all processes.",
    )  # fmt: skip


def _within(seconds: Sequence[float], *shares: int) -> tuple[Cell, ...]:
    """Milliseconds within which so many of a hundred were answered."""
    return tuple(round(float(np.percentile(seconds, share)) * 1000) if seconds else None for share in shares)
