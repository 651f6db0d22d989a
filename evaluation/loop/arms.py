"""The three ways to work that are compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

#: The same policy with thresholds that no record reaches: over a window of 64 rows the odds cannot exceed 3**64, about
#: 3e30. Everything else runs as it does elsewhere: credit, sums, standings, the boost that ranking gives to use.
NEVER: Final = {
    "SONDER_TRUST_POLICY": "trial",
    "SONDER_LEDGER_WINDOW": "64",
    "SONDER_ODDS_RATIO": "3",
    "SONDER_TRIAL_ODDS": "1e100",
    "SONDER_RELEASE_ODDS": "1e100",
    "SONDER_QUARANTINE_ODDS": "1e101",
}


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to work."""

    label: str
    retrieves: bool  # whether lessons are handed out, and made of good work
    environment: Mapping[str, str] = field(default_factory=dict)  # settings of its processes


LOOP, RETRIEVAL, NEITHER = "loop", "retrieval", "neither"
ARMS: Final[Mapping[str, Arm]] = MappingProxyType(
    {
        LOOP: Arm(label="the whole loop", retrieves=True),
        RETRIEVAL: Arm(label="retrieval without trust", retrieves=True, environment=NEVER),
        NEITHER: Arm(label="no lessons", retrieves=False, environment={"SONDER_DISTILLER": "off"}),
    }
)
