"""`evaluate loop`: three ways to work on the same work, through the product's services and its own worker."""

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from evaluation.report import Cell, Progress, Report
from memory.errors import Invalid

if TYPE_CHECKING:
    from evaluation.loop.agent import Played
    from evaluation.loop.stage import Stages

SEEDS, INTERACTIONS, HARMFUL = 8, 1200, 0.12
QUICK_SEEDS, QUICK_INTERACTIONS = 2, 300
MOST_SEEDS, LEAST_INTERACTIONS, MOST_INTERACTIONS = 100, 30, 100_000

HOW: Final = """
An agent works through the same tasks three times: with the whole loop, with retrieval but no trust, and without
lessons. It calls the product's services as the HTTP API does: it starts an interaction, is handed lessons by hybrid
retrieval (at most five), and its outcome is reported by a credential, of someone with judgement seven times in ten,
else of a machine; one verdict in twenty is wrong. The log odds of success are the task's own and the hidden effects of
the lessons that it was handed, added up. Some of the lessons are not in the store at first: the agent writes one down
now and then, and the product makes a lesson of it (the extractive distiller). Each run has a database of its own,
dropped afterwards, and a real Celery worker on a broker of files, started as `manage.py up` starts it. After every 50
interactions the agent waits until the worker has credited every outcome, finished every distillation and embedded
every lesson, so what trust decided counts from the next batch on. Without trust is the same policy with thresholds
that no record can reach. All arms of a seed meet the same work with the same luck; gains are paired by seed, and
intervals are Student's over seeds.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "The world is simulated: real agents follow a lesson more or less, and real effects depend on the task.",
    "The effects of lessons add up and do not change; nothing turns harmful late.",
    "A run takes minutes, so probation, which begins a day after a quarantine, does not come about: a wrong quarantine "
    "ends only by losses without the lesson.",
    "No person takes part: nobody reviews, releases or excuses anything.",
    "Coins are tossed by the ids of interactions, which are new in each run: a second run with the same seeds differs "
    "within the intervals.",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Options of the evaluation."""
    parser.add_argument("--seeds", type=int, metavar="N", help=f"worlds, from seed 1 on; {SEEDS} unless given")
    parser.add_argument(
        "--interactions", type=int, metavar="N", help=f"of each arm in each world; {INTERACTIONS} unless given"
    )
    parser.add_argument(
        "--harmful", type=float, default=HARMFUL, metavar="SHARE", help="of lessons that do harm; %(default)s"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_SEEDS} worlds of {QUICK_INTERACTIONS} interactions: a try"
    )


def evaluate(options: Mapping[str, Any], tell: Progress) -> Report:
    """Plays every arm of every seed. Raises Invalid, and Broken where a process fails or no database can be made."""
    from evaluation.loop.findings import curves, figures, tables
    from evaluation.loop.stage import Stages

    began = time.monotonic()
    seeds, interactions, harmful = _sizes(options)
    runs = []
    with Stages(options.get("environment", {})).open() as stages:
        for seed in range(1, seeds + 1):
            runs.append(_play(stages, seed, seeds, interactions, harmful, tell))
    found = figures(runs)
    return Report(
        name="loop",
        title="Does the loop help?",
        question="Does an agent do better with the whole loop than with retrieval without trust, or without lessons?",
        answer=_answer(found[0].value, found[0].low, found[0].high, found[2].value),
        command=_command(options),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=time.monotonic() - began,
        parameters=_parameters(seeds, interactions, harmful),
        figures=found,
        how=HOW,
        limits=LIMITS,
        tables=tables(runs, range(1, seeds + 1)),
        plots=curves(runs),
    )


def _sizes(options: Mapping[str, Any]) -> tuple[int, int, float]:
    """Seeds, interactions and the share of harmful lessons. Raises Invalid naming the option."""
    quick = options.get("quick", False)
    seeds = options.get("seeds") or (QUICK_SEEDS if quick else SEEDS)
    interactions = options.get("interactions") or (QUICK_INTERACTIONS if quick else INTERACTIONS)
    harmful = options.get("harmful", HARMFUL)
    if not 1 <= seeds <= MOST_SEEDS:
        raise Invalid.field("--seeds", f"use a number from 1 to {MOST_SEEDS}.")
    if not LEAST_INTERACTIONS <= interactions <= MOST_INTERACTIONS:
        raise Invalid.field("--interactions", f"use a number from {LEAST_INTERACTIONS} to {MOST_INTERACTIONS}.")
    if not 0 <= harmful <= 0.5:
        raise Invalid.field("--harmful", "use a share from 0 to 0.5.")
    return seeds, interactions, harmful


def _play(
    stages: "Stages", seed: int, seeds: int, interactions: int, harmful: float, tell: Progress
) -> "dict[str, Played]":
    """All arms of one seed."""
    from evaluation.loop.agent import Played
    from evaluation.loop.arms import ARMS

    found = {}
    total = seeds * len(ARMS) * interactions
    for number, (name, arm) in enumerate(ARMS.items()):
        before = ((seed - 1) * len(ARMS) + number) * interactions
        with stages.copy(arm) as stage, stage.worker() if arm.retrieves else nullcontext():
            for line in stage.told("play", str(seed), str(harmful), str(interactions), name):
                if "done" in line:
                    tell(before + line["done"], total, f"seed {seed}, {arm.label}")
                else:
                    found[name] = Played(**line["played"])
    return found


def _answer(gain: float | None, low: float | None, high: float | None, over_none: float | None) -> str:
    if gain is None or low is None or high is None or over_none is None:
        return "Too few seeds for an interval: use two or more."
    if low <= 0 <= high:
        return f"No difference is shown: with trust {gain:+.1f} points, 95% interval {low:.1f} to {high:.1f}."
    more = "more" if gain > 0 else "less"
    return (
        f"In the last third of its work the agent succeeds {abs(gain):.1f} points {more} often with the whole loop "
        f"than with retrieval without trust (95% interval of the gain {low:.1f} to {high:.1f}); over work without "
        f"lessons the gain is {over_none:.1f} points."
    )


def _command(options: Mapping[str, Any]) -> str:
    words = ["python manage.py evaluate loop"]
    words += [f"--{name} {options[name]}" for name in ("seeds", "interactions") if options.get(name)]
    words += [f"--harmful {options['harmful']}"] if options.get("harmful", HARMFUL) != HARMFUL else []
    words += ["--quick"] if options.get("quick") else []
    return " ".join(words)


def _parameters(seeds: int, interactions: int, harmful: float) -> dict[str, Cell]:
    from evaluation.loop import world
    from evaluation.loop.agent import BATCH
    from memory import conf

    settings = conf.current()
    return {
        "seeds": seeds,
        "interactions": interactions,
        "batch": BATCH,
        "lessons of the world": len(world.texts()),
        "tasks": len(world.situations()) * len(world.SERVICES),
        "harmful": harmful,
        "helpful": world.HELPFUL_SHARE,
        "effect of a harmful one": world.HARMS,
        "of a helpful one": world.HELPS,
        "wrong verdicts": world.ERRS,
        "policy": settings.trust_policy,
        "trial odds": settings.trial_odds,
        "quarantine odds": settings.quarantine_odds,
        "embedding": settings.embedding,
    }
