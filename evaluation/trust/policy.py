"""What a policy is to the world: it decides who is handed out, and learns what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

#: What retrieval does with a candidate that fits, as the exposure log calls it; HIDDEN leaves no trace at all.
SERVED, PROBATION, BY_COIN, BY_QUARANTINE, HIDDEN = (
    "served", "probation", "withheld_trial", "withheld_quarantine", "hidden",
)  # fmt: skip
COHORT: Final = 5  # most lessons that one interaction is handed


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judged interaction, as the product credits it."""

    at: int  # which interaction
    task: int
    source: int  # who judged, index of SOURCES
    lost: bool
    cohort: Sequence[int]  # lessons handed out
    slots: Sequence[int]  # where each of them stands among the task's candidates
    exposures: Sequence[str]  # SERVED or PROBATION for each
    withheld: Sequence[int]  # lessons left out
    withheld_slots: Sequence[int]
    reasons: Sequence[str]  # BY_COIN or BY_QUARANTINE for each


@dataclass(frozen=True, kw_only=True)
class Move:
    """A lesson goes into quarantine or comes out."""

    lesson: int
    at: int  # the interaction whose verdict moved it
    entered: bool  # False: it came out


class Policy(Protocol):
    """A rule for who is handed out."""

    def door(self, lesson: int, at: int) -> str:
        """What becomes of a candidate in interaction `at`."""

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        """Learns from a verdict; returns who moved."""

    def counts(self, source: int) -> bool:
        """Whether this judge's verdicts are evidence: each such row of a lesson in service is one evaluation."""
