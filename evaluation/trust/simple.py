"""What policies are compared with: none, oracles that know the truth, and counts of losses."""

from collections.abc import Sequence
from typing import Final

from evaluation.trust.loop import effects
from evaluation.trust.policy import BY_QUARANTINE, HIDDEN, PROBATION, SERVED, Move, Verdict
from evaluation.trust.world import CONTEXT, World
from memory.rules.probation import ProbationConstants, admits_reference

#: An effect at or below this, in logits, makes a serving a harmful one.
HARMFUL_EFFECT: Final = -0.3


class Everybody:
    """Serves whatever fits."""

    def door(self, lesson: int, at: int) -> str:
        return SERVED

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        return ()

    def counts(self, source: int) -> bool:
        return False


class Oracle(Everybody):
    """Knows every effect and serves no lesson where it does harm. `whole`: it can only keep out whole lessons."""

    def __init__(self, world: World, *, whole: bool) -> None:
        before, effect, in_context = (each <= HARMFUL_EFFECT for each in effects(world))
        if whole:
            in_context = effect = (effect | in_context) & (world.lessons.kind != CONTEXT)
        self._harms = tuple(each.tolist() for each in (effect, in_context))
        self._before, self._onset = before.tolist(), world.lessons.onset.tolist()
        self._context, self._task = world.in_context.tolist(), world.task.tolist()

    def door(self, lesson: int, at: int) -> str:
        harms = self._before if at < self._onset[lesson] else self._harms[self._context[self._task[at]]]
        return HIDDEN if harms[lesson] else SERVED


class Counting:
    """Quarantines at `limit` losses, in all or in a row, whoever judges; one win on probation brings a lesson back.

    Probation is the reference policy's: a fixed share of tasks, some time after the last loss.
    """

    def __init__(self, world: World, probation: ProbationConstants, *, limit: int, in_a_row: bool) -> None:
        self._world, self._probation, self._limit, self._in_a_row = world, probation, limit, in_a_row
        self._losses = [0] * world.scenario.lessons
        self._last_loss = [-1] * world.scenario.lessons
        self._quarantined: set[int] = set()

    def door(self, lesson: int, at: int) -> str:
        if lesson not in self._quarantined:
            return SERVED
        admitted = admits_reference(
            lesson=self._world.lesson_ids[lesson],
            task_digest=self._world.digests[self._world.task[at]],
            hours_since_loss=(at - self._last_loss[lesson]) * self._world.scenario.hours,
            after_hours=self._probation.after_hours,
            share=self._probation.share,
        )
        return PROBATION if admitted else BY_QUARANTINE

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        moves = []
        for lesson in verdict.cohort:
            quarantined = lesson in self._quarantined
            if verdict.lost:
                self._losses[lesson] += 1
                self._last_loss[lesson] = verdict.at
                if not quarantined and self._losses[lesson] >= self._limit:
                    self._quarantined.add(lesson)
                    moves.append(Move(lesson=lesson, at=verdict.at, entered=True))
                continue
            if self._in_a_row or quarantined:
                self._losses[lesson] = 0
            if quarantined:
                self._quarantined.discard(lesson)
                moves.append(Move(lesson=lesson, at=verdict.at, entered=False))
        return moves

    def counts(self, source: int) -> bool:
        return True
