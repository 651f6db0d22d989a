"""What policies are compared with: none, oracles that know the truth, and counts of losses."""

from collections.abc import Sequence
from typing import Final

from evaluation.trust.loop import effects
from evaluation.trust.policy import HIDDEN, SERVED, Move, Verdict
from evaluation.trust.sampling import Sampled
from evaluation.trust.world import CONTEXT, World
from memory.rules.probation import ProbationConstants

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


class Counting(Sampled):
    """Quarantines at `limit` losses, in all or in a row, whoever judges; one win on probation brings a lesson back.

    Probation is the reference policy's: a fixed share of tasks, some time after the last loss.
    """

    def __init__(self, world: World, probation: ProbationConstants, *, limit: int, in_a_row: bool) -> None:
        super().__init__(world, probation)
        self._limit, self._in_a_row = limit, in_a_row
        self._losses = [0] * world.scenario.lessons

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        moves = []
        for lesson in verdict.cohort:
            quarantined = lesson in self.quarantined
            if verdict.lost:
                self._losses[lesson] += 1
                self._last_loss[lesson] = verdict.at
                if not quarantined and self._losses[lesson] >= self._limit:
                    self.quarantined.add(lesson)
                    moves.append(Move(lesson=lesson, at=verdict.at, entered=True))
                continue
            if self._in_a_row or quarantined:
                self._losses[lesson] = 0
            if quarantined:
                self.quarantined.discard(lesson)
                moves.append(Move(lesson=lesson, at=verdict.at, entered=False))
        return moves

    def counts(self, source: int) -> bool:
        return True
