"""The closed loop: what a policy keeps out changes the work, and with it all that the policy sees next."""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from evaluation.trust.policy import BY_COIN, BY_QUARANTINE, COHORT, HIDDEN, PROBATION, Move, Policy, Verdict
from evaluation.trust.world import Floats, Ints, World
from memory.rules.signals import SOURCES

#: Judges that are machinery: these tell losses while it is broken.
MACHINERY: Final = frozenset(SOURCES.index(source) for source in ("machine", "attributed", "self_curriculum"))
STRONGEST, WEAKEST = 1.5, -3.5  # limits of what all lessons of a cohort do together, in logits


@dataclass(kw_only=True)
class Trace:
    """What happened in one run."""

    lost: Ints  # of interactions: 1 where the work really failed
    cohort: Ints  # (interactions, COHORT): lessons handed out, -1 where there are fewer
    in_service: Ints  # (interactions, COHORT): 1 where the lesson was not on probation
    told: Ints  # of interactions: 1 a loss was told, 0 a win, -1 nobody judged
    held: list[tuple[int, int, str]] = field(default_factory=list)  # interaction, lesson, why it was left out
    moves: list[Move] = field(default_factory=list)


@dataclass(kw_only=True)
class HandedOut:
    """What retrieval makes of one interaction."""

    cohort: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    exposures: list[str] = field(default_factory=list)
    withheld: list[int] = field(default_factory=list)
    withheld_slots: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def effects(world: World) -> tuple[Floats, Floats, Floats]:
    """Each lesson's effect before its onset, from then on, and from then on in the context, in logits."""
    return world.lessons.before, world.lessons.effect, world.lessons.effect_in_context


def hand_out(candidates: list[int], fits: list[bool], born: list[int], policy: Policy, at: int) -> HandedOut:
    """The first candidates that fit and that the policy serves.

    As in the product a lesson that the coin leaves out takes no place, and the quarantined ones noted as controls are
    those that would have had one if nobody were quarantined.
    """
    out = HandedOut()
    places = 0  # taken if nobody were quarantined
    for slot, lesson in enumerate(candidates):
        if not fits[slot] or born[lesson] > at:
            continue
        door = policy.door(lesson, at)
        if door == HIDDEN:
            continue
        if door in (BY_COIN, BY_QUARANTINE):
            if door == BY_COIN or places < COHORT:
                out.withheld.append(lesson)
                out.withheld_slots.append(slot)
                out.reasons.append(door)
            places += door == BY_QUARANTINE
            continue
        places += 1
        out.cohort.append(lesson)
        out.slots.append(slot)
        out.exposures.append(door)
        if len(out.cohort) == COHORT:
            break
    return out


def run(world: World, policy: Policy) -> Trace:
    """Plays the whole stream of work."""
    n = world.scenario.interactions
    trace = Trace(
        lost=np.zeros(n, dtype=np.int64),
        cohort=np.full((n, COHORT), -1),
        in_service=np.zeros((n, COHORT), dtype=np.int64),
        told=np.full(n, -1),
    )
    reachable = [row[:reach] for row, reach in zip(world.candidates.tolist(), world.reach.tolist(), strict=True)]
    born, sources, tasks = world.lessons.born.tolist(), world.source.tolist(), world.task.tolist()
    nature = _Nature(world)
    for at in range(n):
        task, source = tasks[at], sources[at]
        out = hand_out(reachable[task], world.fits[at].tolist(), born, policy, at)
        trace.lost[at] = nature.loses(at, task, source, out.cohort)
        trace.cohort[at, : len(out.cohort)] = out.cohort
        trace.in_service[at, : len(out.cohort)] = [exposure != PROBATION for exposure in out.exposures]
        trace.held += [(at, *pair) for pair in zip(out.withheld, out.reasons, strict=True)]
        if not nature.scored[at]:
            continue
        lost = nature.told(at, source, trace.lost)
        trace.told[at] = lost
        trace.moves += policy.credit(Verdict(at=at, task=task, source=source, lost=lost, **vars(out)))
    return trace


class _Nature:
    """What really happens, and what the judges say of it. Plain lists: they are read once a lesson and interaction."""

    def __init__(self, world: World) -> None:
        self.base, self.chance, self.verdict = (a.tolist() for a in (world.base, world.chance, world.verdict))
        self.before, self.effect, self.in_context = (each.tolist() for each in effects(world))
        self.context, self.onset, self.scored = world.in_context.tolist(), world.lessons.onset.tolist(), world.scored
        self.about, self.broken = world.about.tolist(), world.broken.tolist()
        self.bonus = [world.scenario.exam_bonus if source == "self_curriculum" else 0.0 for source in SOURCES]
        self.caught = world.scenario.caught
        self.blamed = world.scenario.blamed

    def loses(self, at: int, task: int, source: int, cohort: list[int]) -> bool:
        """Whether the work fails: effects of the lessons add up as logits."""
        later = self.in_context if self.context[task] else self.effect
        together = sum(self.before[i] if at < self.onset[i] else later[i] for i in cohort)
        logit = self.base[task] + self.bonus[source] + min(STRONGEST, max(WEAKEST, together))
        return bool(self.chance[at] > 1 / (1 + math.exp(-logit)))

    def told(self, at: int, source: int, lost: Ints) -> bool:
        """Whether the judge tells a loss."""
        if self.broken[at] and source in MACHINERY:
            return True
        wrong = self.caught if lost[self.about[at]] else self.blamed
        return bool(self.verdict[at] < wrong[source])
