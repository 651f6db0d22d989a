"""The worlds: how many lessons, how they are used, who judges, and how many of them do harm."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One world. Shares are of interactions unless said otherwise; effects and difficulties are logits.

    What differs by judge has a value for each of `memory.rules.signals.SOURCES`, in their order.
    """

    name: str
    lessons: int = 1000
    interactions: int = 20_000
    days: float = 100.0  # in which the interactions happen, evenly
    topics: int = 60  # what tasks are about, a few of them far more popular than the rest
    loss_rate: float = 0.20  # of all work if lessons did nothing
    cohort: float = 3.0  # lessons handed out on average, about
    kept: float = 0.85  # chance that a candidate fits the words of the query this time
    harmful: float = 0.03  # share of lessons that always do harm
    turning: float = 0.02  # share that begin to do harm some time in the run
    context: float = 0.03  # share that do harm on about a third of the tasks
    helpful: float = 0.25  # share that help
    harm: float = 2.0  # mean effect of a harmful lesson, taken from the logit of success
    exam_bonus: float = 0.8  # how much easier the tasks of an agent's own exam are
    scored: float = 0.90  # share that anybody judges
    mix: tuple[float, ...] = (0.20, 0.35, 0.10, 0.25, 0.10)  # who judges
    caught: tuple[float, ...] = (0.97, 0.80, 0.80, 0.60, 0.85)  # losses told as losses
    blamed: tuple[float, ...] = (0.02, 0.06, 0.06, 0.01, 0.12)  # wins told as losses
    mislinked: float = 0.35  # share of attributed verdicts that are about another interaction
    bursts: float = 0.01  # share of time in which the machinery that judges is broken and tells losses

    @property
    def hours(self) -> float:
        """Hours between two interactions."""
        return 24 * self.days / self.interactions


BASE: Final = Scenario(name="base")
_ALL: Final = (
    BASE,
    Scenario(name="large", lessons=5000, interactions=100_000, days=200, topics=150),
    replace(BASE, name="null", harmful=0, turning=0, context=0),
    Scenario(
        name="live-like", lessons=1000, interactions=3000, days=50, loss_rate=0.07, bursts=0.003, exam_bonus=3.0,
        mix=(0.08, 0.03, 0.0, 0.86, 0.03),
    ),
    Scenario(name="small", lessons=500, interactions=2000, days=40),
    replace(BASE, name="1% harmful", harmful=0.006, turning=0.004, context=0.01),
    replace(BASE, name="15% harmful", harmful=0.10, turning=0.05),
)  # fmt: skip
WORLDS: Final[Mapping[str, Scenario]] = MappingProxyType({world.name.replace(" ", "-"): world for world in _ALL})
