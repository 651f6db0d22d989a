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


def _even(world: World, c: Constants) -> Policy:
    """The default with a coin that withholds half, whatever the record of a lesson on trial."""
    return Trial(world, c.ledger, replace(c.probation, even_odds=1.0, most_withheld=0.5), c.expectation)


def _neighbours(world: World, c: Constants) -> Policy:
    """The default with the other expectation, and thresholds that hold its false rate where the default's is."""
    ledger = replace(c.ledger, quarantine_odds=1.5 * c.ledger.quarantine_odds, release_odds=1.5 * c.ledger.release_odds)
    return trial_with_neighbours(world, ledger, c.probation, c.expectation)


NONE, ORACLE, WHOLE, TRIAL, REFERENCE = "none", "oracle", "oracle-lessons", "trial", "reference"
#: Variants of the default that are no part of the product, and the worlds in which they are played.
TRIES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"try-even": frozenset({"base", "large"}), "try-neighbours": frozenset({"base"})}
)
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
        "try-even": ("a try: even coin", _even),
        "try-neighbours": ("a try: task neighbours", _neighbours),
    }
)
