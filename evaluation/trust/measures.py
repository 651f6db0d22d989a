"""What a run was like, measured against the truth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.trust.loop import Trace, effects
from evaluation.trust.policy import BY_COIN, Policy
from evaluation.trust.simple import HARMFUL_EFFECT
from evaluation.trust.world import CONTEXT, EXAM, HARMFUL, HELPFUL, NEUTRAL, TURNING, Flags, Floats, Ints, World
from memory.rules.signals import SOURCES

#: Harmful servings (in the run without any policy) from which on a lesson counts in a recall.
SERVINGS: Final = (5, 10, 20, 30, 50, 100)
PARTS: Final = 10  # of the run, for the success over time


@dataclass(frozen=True, kw_only=True)
class Stay:
    """One quarantine."""

    right: bool  # the lesson did harm by then
    days: float  # until it ended or the run did
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Measures:
    """One run of one policy. Shares are in [0, 1], NaN where nothing could be counted.

    Good lessons are the neutral and the helpful ones, harmful ones those that always harm or have begun to; lessons
    that harm in a context only are counted in neither.
    """

    success: float  # share of the work that succeeds
    success_by_part: tuple[float, ...]  # the same in each tenth of the run
    recall: tuple[float, ...]  # for each of SERVINGS: share of such harmful lessons ever quarantined while harmful
    prevented: float  # share of the harmful servings of the run without a policy that did not happen
    right: int  # quarantines of harmful lessons
    wrong: int  # quarantines of good lessons, and of lessons that were yet to turn
    evaluations: int  # rows of good lessons in service that the policy counts: each is a chance to be wrong
    false_ever: float  # share of good lessons served at least 5 times that were ever quarantined
    false_rare: float  # the same of those served 5 to 25 times on tasks that are lost at least 35% of the time
    false_together: float  # the same of those of whose servings at least 25% were shared with a harmful lesson
    withheld_coin: float  # servings of good lessons withheld by the coin, per serving in the run without a policy
    withheld_quarantine: float  # the same by quarantine
    tested: float  # share of good lessons served at least 5 times that the coin ever left out
    delays: tuple[tuple[float, bool], ...]  # of harmful lessons with 10 harmful servings: servings until found, found?
    stays: tuple[Stay, ...]


@dataclass(frozen=True, kw_only=True)
class Served:
    """What each lesson went through in a run. Arrays over lessons."""

    servings: Ints
    harmful: Ints  # servings in which it did harm
    together: Floats  # share of its servings shared with a lesson that did harm
    hardness: Floats  # mean chance that the work was lost without any lesson
    harmed: Flags  # (interactions, COHORT): where the lesson in this place did harm


def served(world: World, trace: Trace) -> Served:
    """Counts the servings."""
    count, cohort = world.scenario.lessons, trace.cohort
    here = cohort >= 0
    at = np.broadcast_to(np.arange(len(cohort))[:, None], cohort.shape)
    before, later, in_context = effects(world)
    effect = np.where(world.in_context[world.task][:, None], in_context[cohort], later[cohort])
    effect = np.where(at < world.lessons.onset[cohort], before[cohort], effect)
    harmed = here & (effect <= HARMFUL_EFFECT)
    others = harmed.sum(axis=1, keepdims=True) - harmed > 0
    logit = world.base[world.task] + np.where(world.source == EXAM, world.scenario.exam_bonus, 0.0)
    lost = np.broadcast_to((1 / (1 + np.exp(logit)))[:, None], cohort.shape)
    servings = np.bincount(cohort[here], minlength=count)
    some = np.maximum(1, servings)
    return Served(
        servings=servings,
        harmful=np.bincount(cohort[harmed], minlength=count),
        together=np.bincount(cohort[here & others], minlength=count) / some,
        hardness=np.bincount(cohort[here], weights=lost[here], minlength=count) / some,
        harmed=harmed,
    )


def measure(world: World, trace: Trace, policy: Policy, unguarded: Served) -> Measures:
    """One run; `unguarded` are the servings of the run of the same world without a policy."""
    kind = world.lessons.kind
    good, harmful = (kind == NEUTRAL) | (kind == HELPFUL), (kind == HARMFUL) | (kind == TURNING)
    now = served(world, trace)
    entries = [move for move in trace.moves if move.entered and kind[move.lesson] != CONTEXT]
    right = {move.lesson for move in reversed(entries) if world.harms(move.lesson, move.at)}
    wrong = {move.lesson for move in entries if not world.harms(move.lesson, move.at)}
    found, mistaken, coined = (np.isin(np.arange(len(kind)), list(some)) for some in (right, wrong, _coined(trace)))
    known = good & (unguarded.servings >= 5)
    rare = known & (unguarded.servings <= 25) & (unguarded.hardness >= 0.35)
    total = unguarded.servings[good].sum()
    coins, kept_out = _withheld(trace, good)
    stays = _stays(world, trace)
    return Measures(
        success=1 - float(trace.lost.mean()),
        success_by_part=tuple(1 - float(part.mean()) for part in np.array_split(trace.lost, PARTS)),
        recall=tuple(_share(found, harmful & (unguarded.harmful >= least)) for least in SERVINGS),
        prevented=_ratio(
            unguarded.harmful[harmful].sum() - now.harmful[harmful].sum(), unguarded.harmful[harmful].sum()
        ),
        right=sum(stay.right for stay in stays),
        wrong=sum(not stay.right for stay in stays),
        evaluations=_evaluations(world, trace, policy),
        false_ever=_share(mistaken, known),
        false_rare=_share(mistaken, rare),
        false_together=_share(mistaken, known & (unguarded.together >= 0.25)),
        withheld_coin=_ratio(coins, total),
        withheld_quarantine=_ratio(kept_out, total),
        tested=_share(coined, known),
        delays=_delays(trace, now, right, np.flatnonzero(harmful & (unguarded.harmful >= 10)), world),
        stays=stays,
    )


def _share(what: Flags, of: Flags) -> float:
    return float(what[of].mean()) if of.any() else math.nan


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below else math.nan


def _coined(trace: Trace) -> set[int]:
    return {lesson for _, lesson, reason in trace.held if reason == BY_COIN}


def _withheld(trace: Trace, good: Flags) -> tuple[int, int]:
    """Servings of good lessons withheld by the coin, and by quarantine."""
    reasons = [reason == BY_COIN for _, lesson, reason in trace.held if good[lesson]]
    return sum(reasons), len(reasons) - sum(reasons)


def _evaluations(world: World, trace: Trace, policy: Policy) -> int:
    counted = np.array([policy.counts(source) for source in range(len(SOURCES))])
    judged = (trace.told >= 0) & counted[world.source]
    kind, onset = world.lessons.kind[trace.cohort], world.lessons.onset[trace.cohort]
    turned = np.arange(len(trace.cohort))[:, None] >= onset
    good = (kind == NEUTRAL) | (kind == HELPFUL) | ((kind == TURNING) & ~turned)
    return int((judged[:, None] & (trace.in_service == 1) & good).sum())


def _stays(world: World, trace: Trace) -> tuple[Stay, ...]:
    """Every quarantine, but of lessons that harm in a context."""
    entered: dict[int, int] = {}
    stays = []

    def stay(lesson: int, until: int, *, ended: bool) -> Stay:
        since = entered.pop(lesson)
        days = (until - since) * world.scenario.hours / 24
        return Stay(right=world.harms(lesson, since), days=days, ended=ended)

    for move in trace.moves:
        if world.lessons.kind[move.lesson] == CONTEXT:
            continue
        if move.entered:
            entered[move.lesson] = move.at
        else:
            stays.append(stay(move.lesson, move.at, ended=True))
    return (*stays, *(stay(lesson, world.scenario.interactions, ended=False) for lesson in list(entered)))


def _delays(trace: Trace, now: Served, found: set[int], lessons: Ints, world: World) -> tuple[tuple[float, bool], ...]:
    """Harmful servings until a lesson was quarantined, or in all if it never was."""
    first = {
        move.lesson: move.at for move in reversed(trace.moves) if move.entered and world.harms(move.lesson, move.at)
    }
    result = []
    for lesson in lessons.tolist():
        until = first[lesson] + 1 if lesson in found else len(trace.lost)
        servings = (now.harmed[:until] & (trace.cohort[:until] == lesson)).sum()
        result.append((float(servings), lesson in found))
    return tuple(result)


def durations(stays: Sequence[Stay], *, right: bool) -> tuple[list[float], list[bool]]:
    """Days of the right or of the wrong quarantines, and whether each ended within the run."""
    some = [stay for stay in stays if stay.right is right]
    return [stay.days for stay in some], [stay.ended for stay in some]
