"""Trust policies behind one interface: each reads its evidence and decides by a pure rule."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from memory import conf
from memory.rules.quarantine import ReferenceConstants
from memory.services.evidence import Assessment, Occasion, Record
from memory.services.reference import ReferencePolicy
from memory.services.trial import TrialPolicy, ledger_constants


class Policy(Protocol):
    """A rule for who is quarantined. `assess` reads and never writes."""

    name: str
    sources: Sequence[str]  # whose outcomes count

    def assess(
        self, lessons: Iterable[UUID], account_id: UUID | None, occasions: Mapping[UUID, Occasion] | None = None
    ) -> list[tuple[Record, Assessment]]:
        """Each existing lesson's record and what the policy makes of it, in the order of ids.

        `occasions` says what moved each lesson's evidence; without one the lesson is only looked at.
        """


def policy() -> Policy:
    """The policy in force."""
    if conf.current().trust_policy == "reference":
        return ReferencePolicy(ReferenceConstants())
    return TrialPolicy(ledger_constants())
