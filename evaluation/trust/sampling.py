"""Probation as the policy `reference` has it: a fixed share of tasks, some time after the last loss."""

from evaluation.trust.policy import BY_QUARANTINE, PROBATION, SERVED
from evaluation.trust.world import World
from memory.rules.probation import ProbationConstants, admits_reference


class Sampled:
    """Keeps lessons in quarantine out but for the sample; what moves them is for the policy that inherits this."""

    def __init__(self, world: World, probation: ProbationConstants) -> None:
        self._world, self._probation = world, probation
        self.quarantined: set[int] = set()
        self._last_loss = [-1] * world.scenario.lessons

    def door(self, lesson: int, at: int) -> str:
        if lesson not in self.quarantined:
            return SERVED
        admitted = admits_reference(
            lesson=self._world.lesson_ids[lesson],
            task_digest=self._world.digests[self._world.task[at]],
            hours_since_loss=(at - self._last_loss[lesson]) * self._world.scenario.hours,
            after_hours=self._probation.after_hours,
            share=self._probation.share,
        )
        return PROBATION if admitted else BY_QUARANTINE
