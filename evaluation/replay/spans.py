"""When a lesson was on trial or in quarantine, so that each serving can be asked what would have become of it."""

from bisect import bisect_left
from datetime import datetime
from typing import Final
from uuid import UUID

from memory.rules.probation import withheld_by_coin

IN_SERVICE, TRIAL, QUARANTINE, OUT = "active", "trial", "quarantined", "out"
HOLDS_BACK: Final = (TRIAL, QUARANTINE)


class Spans:
    """Of each lesson the moments at which its stage changed, oldest first, and what it was from then on.

    With the stage goes the share of its work that the coin of a trial withholds; 0 at any other stage.
    """

    def __init__(self) -> None:
        self._changes: dict[UUID, tuple[list[datetime], list[tuple[str, float]]]] = {}

    def note(self, lesson: UUID, at: datetime, stage: str, share: float = 0.0) -> None:
        """The lesson is at this stage from now on; on trial, `share` of its work is withheld."""
        found = self._changes.get(lesson)
        if found is None:
            if stage != IN_SERVICE:
                self._changes[lesson] = ([at], [(stage, share)])
        elif found[1][-1] != (stage, share):
            found[0].append(at)
            found[1].append((stage, share))

    def _then(self, lesson: UUID, at: datetime) -> tuple[str, float]:
        found = self._changes.get(lesson)
        place = bisect_left(found[0], at) if found else 0
        return found[1][place - 1] if found and place else (IN_SERVICE, 0.0)

    def stage(self, lesson: UUID, at: datetime) -> str:
        """Where the lesson stood then; what changed at that very moment came after."""
        return self._then(lesson, at)[0]

    def withholds(self, lesson: UUID, interaction: UUID, at: datetime) -> bool:
        """Whether the lesson would have been held back from this interaction: quarantined, or by the coin of a trial.

        The small sample that probation would let through is left out of account.
        """
        stage, share = self._then(lesson, at)
        return stage == QUARANTINE or withheld_by_coin(lesson=lesson, interaction=interaction, share=share)

    def lessons(self) -> list[UUID]:
        """The lessons that were ever anything but in service."""
        return [
            lesson for lesson, (_, stages) in self._changes.items() if {stage for stage, _ in stages} & set(HOLDS_BACK)
        ]
