"""Which question a person should look at first: four stated parts, multiplied.

Each part lies in [0, 1], so that the priority does too, and a person can see which part makes a question urgent.
"""

from dataclasses import dataclass
from typing import Final

from memory.rules.health import wilson

DAYS: Final = 30  # of exposures that reach looks back on
HALF_REACH: Final = 10.0  # a lesson in 8 recent interactions has half of all reach
WAITING_DAYS: Final = 7.0  # after which half of what waiting can add is added


@dataclass(frozen=True, kw_only=True)
class Priority:
    """The parts of a priority, each in [0, 1]."""

    reach: float  # how much work the lesson is in
    uncertainty: float  # how little its record says of its loss rate
    age: float  # how long the question has waited
    severity: float  # chance that the answer matters to whoever is handed the lesson

    @property
    def score(self) -> float:
        """In [0, 1]; the higher comes first."""
        return self.reach * self.uncertainty * self.age * self.severity

    @property
    def parts(self) -> dict[str, float]:
        """By name, in the order in which they are multiplied."""
        return {
            "reach": self.reach,
            "uncertainty": self.uncertainty,
            "age": self.age,
            "severity": self.severity,
        }


def priority(*, exposures: int, wins: int, losses: int, days: float, severity: float) -> Priority:
    """The priority of a question about a lesson.

    `exposures` counts the interactions of the last 30 days that had the lesson or would have had it, `wins` and
    `losses` its judged servings, `days` how long the question has been open, `severity` is a chance in [0, 1].

    * reach: (exposures + 1) / (exposures + 10): 0.1 for a lesson that nothing has needed yet, towards 1.
    * uncertainty: the width of the 95% Wilson interval of its loss rate: 1 without a judged serving, 0.28 at 14 of 40.
    * age: from one half when asked, towards 1: 0.75 after a week. Waiting at most doubles a priority.
    """
    interval = wilson(losses, wins + losses)
    return Priority(
        reach=(exposures + 1) / (exposures + HALF_REACH),
        uncertainty=interval.high - interval.low,
        age=1 - 0.5 ** (1 + max(0.0, days) / WAITING_DAYS),
        severity=severity,
    )


_MEANING: Final = {
    "reach": "reach: how much recent work it is in",
    "uncertainty": "uncertainty: how little its record says",
    "age": "age: how long the question has waited",
    "severity": "severity: how likely the answer matters",
}


def in_words(parts: dict[str, float]) -> list[tuple[str, float]]:
    """The stored parts with what each means, in the order of multiplication; what is not known is left out."""
    return [(meaning, parts[name]) for name, meaning in _MEANING.items() if name in parts]
