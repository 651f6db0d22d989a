"""The policies that are compared, each with the constants in force."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from evaluation.trust.neighbours import trial_with_neighbours
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


def _coin(world: World, c: Constants) -> Policy:
    """The default with a coin that withholds more often."""
    return Trial(world, c.ledger, replace(c.probation, coin=1.2 * c.probation.coin), c.expectation)


def _neighbours(world: World, c: Constants) -> Policy:
    """The default with the other expectation, and thresholds that hold its false rate where the default's is."""
    ledger = replace(c.ledger, quarantine_odds=1.5 * c.ledger.quarantine_odds, release_odds=1.5 * c.ledger.release_odds)
    return trial_with_neighbours(world, ledger, c.probation, c.expectation)


NONE, ORACLE, WHOLE, TRIAL, REFERENCE = "none", "oracle", "oracle-lessons", "trial", "reference"
#: Variants of the default that are no part of the product; played in `base` alone.
TRIES: Final = frozenset({"try-coin", "try-neighbours"})
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
        "try-coin": ("a try: coin of 6 in 10", _coin),
        "try-neighbours": ("a try: task neighbours", _neighbours),
    }
)
