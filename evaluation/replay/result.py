"""What a replay found; plain data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from evaluation.replay.constants import Value

Kind = Literal["entered", "left"]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which part of the store is replayed."""

    account_id: UUID | None = None  # whose lessons; None where lessons are global
    since: datetime | None = None  # the replayed policy decides from then on; before, the journal does


@dataclass(frozen=True, kw_only=True, order=True)
class Decision:
    """A lesson went into quarantine or came out of it by the word of a policy."""

    credit_seq: int  # the interaction that had been credited last
    lesson: UUID
    kind: Kind
    at: datetime = field(compare=False)


@dataclass(kw_only=True)
class Servings:
    """Servings, by what came of them."""

    won: int = 0
    lost: int = 0
    unjudged: int = 0

    @property
    def n(self) -> int:
        return self.won + self.lost + self.unjudged

    def count(self, reward: float | None) -> None:
        """One more; `reward` is None where nobody has judged it."""
        if reward is None:
            self.unjudged += 1
        elif reward < 0:
            self.lost += 1
        else:
            self.won += 1


@dataclass(kw_only=True)
class Course:
    """One lesson under both."""

    decided: list[Decision] = field(default_factory=list)  # by the store's own policy, in order
    replayed: list[Decision] = field(default_factory=list)  # by the replayed one
    withheld: Servings = field(default_factory=Servings)  # handed out, and the replayed policy would have held back
    served: Servings = field(default_factory=Servings)  # held back, and it would have handed out

    @property
    def agrees(self) -> bool:
        """Whether both decided the same, at the same credits."""
        return self.decided == self.replayed

    @staticmethod
    def entered(decisions: Iterable[Decision]) -> bool:
        """Whether these ever take the lesson into quarantine."""
        return any(decision.kind == "entered" for decision in decisions)


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """What the replayed policy would have decided, beside what was decided."""

    policy: str
    constants: Mapping[str, Value]
    is_own: bool  # these are the policy and the constants in force
    scope: Scope
    until: datetime  # what was credited later is not in it
    credits: int  # interactions that were credited
    corrections: int  # of these, how often another outcome decided later
    lessons: int  # with at least one row in the log
    given: int  # decisions of people and of the clock, taken as they were
    merges: int  # lessons whose rows became another's: their history is told as if it had always been the other's
    courses: Mapping[UUID, Course]  # of the lessons about which the two do or decide anything

    @property
    def decided(self) -> list[Decision]:
        """What was decided by the store's policy, in order."""
        return sorted(decision for course in self.courses.values() for decision in course.decided)

    @property
    def replayed(self) -> list[Decision]:
        """What would have been decided, in order."""
        return sorted(decision for course in self.courses.values() for decision in course.replayed)
