"""The policies that are compared, each with the constants in force."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from evaluation.trust.policy import Policy
from evaluation.trust.reference import Reference
from evaluation.trust.simple import Counting, Everybody, Oracle
from evaluation.trust.trial import Trial
from evaluation.trust.world import World
from memory.rules.expectation import ExpectationConstants
from memory.rules.ledger import LedgerConstants
from memory.rules.probation import ProbationConstants
from memory.rules.quarantine import ReferenceConstants


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of the product's policies."""

    ledger: LedgerConstants
    probation: ProbationConstants
    reference: ReferenceConstants
    expectation: ExpectationConstants


DEFAULTS: Final = Constants(
    ledger=LedgerConstants(),
    probation=ProbationConstants(),
    reference=ReferenceConstants(),
    expectation=ExpectationConstants(),
)
NONE, ORACLE, WHOLE, TRIAL, REFERENCE = "none", "oracle", "oracle-lessons", "trial", "reference"
POLICIES: Final[Mapping[str, tuple[str, Callable[[World, Constants], Policy]]]] = MappingProxyType(
    {
        NONE: ("none", lambda world, c: Everybody()),
        ORACLE: ("oracle, each serving", lambda world, c: Oracle(world, whole=False)),
        WHOLE: ("oracle, whole lessons", lambda world, c: Oracle(world, whole=True)),
        "five-losses": ("five losses in all", lambda world, c: Counting(world, c.probation, limit=5, in_a_row=False)),
        "five-in-a-row": (
            "five losses in a row",
            lambda world, c: Counting(world, c.probation, limit=5, in_a_row=True),
        ),
        REFERENCE: ("reference", lambda world, c: Reference(world, c.reference, c.probation, live=False)),
        "reference-live": (
            "reference, live bands",
            lambda world, c: Reference(world, c.reference, c.probation, live=True),
        ),
        TRIAL: ("trial (the default)", lambda world, c: Trial(world, c.ledger, c.probation, c.expectation)),
    }
)
