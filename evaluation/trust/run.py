"""`manage.py evaluate trust`: how well each trust policy finds harmful lessons where the harmful ones are known."""

import os
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from evaluation.report import Cell, Progress, Report, number

if TYPE_CHECKING:
    from evaluation.trust.bars import Summaries
    from evaluation.trust.policies import Constants

WORLDS: Final = ("base", "large", "null", "live-like", "small", "1%-harmful", "15%-harmful")
POLICIES: Final = (
    "none", "oracle", "oracle-lessons", "five-losses", "five-in-a-row", "reference", "reference-live", "trial",
    "try-even", "try-neighbours",
)  # fmt: skip
SEEDS, QUICK_SEEDS = 10, 2

HOW: Final = (
    "Lessons, tasks, agents and judges are simulated, so that it is known which lessons do harm. A lesson adds its "
    "effect to the logit of the work's success. Rarely seen tasks are harder and rare lessons sit on them, so that "
    "harmless lessons lose often; lessons are handed out in cohorts; some lessons turn bad during the run; judges miss "
    "losses and blame wins, each kind at its own rate. What a policy keeps out changes the work, and with it what the "
    "policy sees next. All policies meet the same tasks, queries and chances of a seed. The policies are the product's "
    "own rules, with its constants; where they run as arrays, a test holds every row and every decision to the rules. "
    "Intervals are at 95% over seeds: Student's for means, a bootstrap for ratios of sums. A bar counts as met unless "
    "the whole interval lies on its wrong side. The oracle knows each effect on each task and withholds a lesson where "
    "it does harm. A try is a variant of the default policy that is no part of the product: a coin that leaves a "
    "lesson on trial out of half its work, whatever its record; and, in base alone, an expected loss that pools each "
    "task's losses with those of similar tasks, with thresholds higher by half. The constants of the default's coin "
    "were chosen in worlds of other seeds than those reported here."
)
LIMITS: Final = (
    "A simulated world is no store: how many lessons do harm, how much, and how difficulty and use go together are "
    "assumptions, chosen to look like one live store.",
    "Judges err at random. One that is biased against a lesson would look like harm to every policy here.",
    "Effects of lessons add up and do not depend on their order; verdicts come at once and nobody corrects one.",
    "No person reviews anything: quarantines stand until the policy itself ends them.",
    "Lessons that harm in a third of their tasks only count neither as harmful nor as good.",
    "Intervals are over seeds of these worlds. They say nothing about how far other worlds are from these.",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--worlds", type=_some(WORLDS), help=f"some of {','.join(WORLDS)}; all but small unless given")
    parser.add_argument("--policies", type=_some(POLICIES), help=f"some of {','.join(POLICIES)}; all unless given")
    parser.add_argument("--seeds", type=_count, help=f"worlds of each kind, {SEEDS} unless given")
    parser.add_argument("--jobs", type=_count, help="cores, all of them unless given")
    parser.add_argument(
        "--quick", action="store_true", help=f"base alone and {QUICK_SEEDS} seeds, unless they are given"
    )


def _some(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def parse(line: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(line.split(",")))
        if unknown := [name for name in names if name not in known]:
            raise ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return parse


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def evaluate(options: Mapping[str, Any], tell: Progress) -> Report:
    """Plays every world with every seed, and reports."""
    from evaluation.trust.bars import figures
    from evaluation.trust.pictures import plots, tables
    from evaluation.trust.study import Job, by_world, play_all
    from evaluation.trust.summary import summarise

    began = time.monotonic()
    quick = options["quick"]
    worlds = options["worlds"] or (("base",) if quick else tuple(world for world in WORLDS if world != "small"))
    seeds = options["seeds"] or (QUICK_SEEDS if quick else SEEDS)
    policies = tuple(name for name in POLICIES if name in (options["policies"] or POLICIES) or name in POLICIES[:2])
    constants = constants_in_force()
    jobs = [
        Job(world=world, seed=seed, policies=_played_in(world, policies), constants=constants)
        for world in sorted(worlds, key=lambda world: world != "large")  # the longest first
        for seed in range(seeds)
    ]
    found = []
    for done in play_all(jobs, min(options["jobs"] or os.cpu_count() or 1, len(jobs))):
        found.append(done)
        tell(len(found), len(jobs), f"{done[0].world}, seed {done[0].seed}")
    played = by_world(found)
    summaries = {world: {policy: summarise(runs, policy) for policy in runs} for world, runs in played.items()}
    return Report(
        name="trust",
        title="Trust: are harmful lessons found, and good ones left alone?",
        question="How well does each trust policy find harmful lessons in a simulated world where they are known?",
        answer=_answer(summaries),
        command=_command(options),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters=_parameters(worlds, seeds, policies, constants),
        figures=figures(summaries),
        how=HOW,
        limits=LIMITS,
        tables=tables(summaries),
        plots=plots(played, summaries),
    )


def _played_in(world: str, policies: tuple[str, ...]) -> tuple[str, ...]:
    from evaluation.trust.policies import TRIES

    return tuple(name for name in policies if world in TRIES.get(name, (world,)))


def constants_in_force() -> "Constants":
    """The settings of this installation, so that other thresholds can be tried before they are used."""
    from evaluation.trust.policies import DEFAULTS, Constants
    from memory import conf
    from memory.rules.probation import ProbationConstants
    from memory.services.trial import ledger_constants

    settings = conf.current()
    return Constants(
        ledger=ledger_constants(),
        probation=ProbationConstants(after_hours=settings.probation_after_hours, share=settings.probation_share),
        reference=DEFAULTS.reference,
        expectation=DEFAULTS.expectation,
    )


def _answer(summaries: "Summaries") -> str:
    """What the default and the reference policy come to in the largest worlds that were played."""
    worlds = [world for world in ("base", "large") if world in summaries] or list(summaries)[:1]
    told = []
    for policy, name in (("trial", "the default policy"), ("reference", "the reference policy")):
        found = [(world, summaries[world][policy]) for world in worlds if policy in summaries[world]]
        gains = [f"{number(s.share.value, '%')} in {world}" for world, s in found if s.share.value is not None]
        right = [number(s.precision.value, "%") for _, s in found if s.precision.value is not None]
        if gains:
            of = f", and {' and '.join(right)} of its quarantines are right" if right else ""
            told.append(f"{name} gains {' and '.join(gains)} of what an oracle would{of}")
    return f"{'; '.join(told).capitalize()}." if told else f"Played {', '.join(worlds)}."


def _command(options: Mapping[str, Any]) -> str:
    """What makes this report again."""
    parts = [f"--{name} {','.join(options[name])}" for name in ("worlds", "policies") if options[name]]
    parts += [f"--seeds {options['seeds']}"] if options["seeds"] else []
    parts += ["--quick"] if options["quick"] else []
    return " ".join(["python manage.py evaluate trust", *parts])


def _parameters(
    worlds: tuple[str, ...], seeds: int, policies: tuple[str, ...], constants: "Constants"
) -> dict[str, Cell]:
    ledger, probation = constants.ledger, constants.probation
    kept = {f.name: getattr(ledger, f.name) for f in fields(ledger) if f.name not in ("weights", "tolerance")}
    return {
        "worlds": ", ".join(worlds),
        "seeds": f"0 to {seeds - 1}",
        "policies": ", ".join(policies),
        **{name.replace("_", " "): value for name, value in kept.items()},
        "weights": ", ".join(f"{source} {weight}" for source, weight in ledger.weights.items()),
        "probation after hours": probation.after_hours,
        "probation share": probation.share,
        "coin even at odds": probation.even_odds,
        "coin sharpness": probation.sharpness,
        "coin withholds at most": probation.most_withheld,
    }
