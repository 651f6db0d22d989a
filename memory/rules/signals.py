"""What an outcome says, what it is worth, and whose word counts.

A judge reports a signal; the signal has a fixed price. Of everything that was said about one interaction the strongest
source decides, and within a source its latest word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID

#: Who judged, strongest first: someone with judgement looked at the work; the runtime graded this interaction's own
#: output; a later verification was matched back by heuristics; the agent sat its own exam; nobody recorded who.
SOURCES: Final[tuple[str, ...]] = ("caller", "machine", "attributed", "self_curriculum", "unknown")

#: The word with which a source withdraws what it said: it then counts as never having judged.
RETRACTED: Final = "retracted"

#: Signal -> reward in [-1, 1]. A price never changes once shipped: stored rewards would stop meaning the same thing.
REWARDS: Final[Mapping[str, Decimal]] = MappingProxyType(
    {
        "tests_passed": Decimal("1.0"),
        "used": Decimal("0.9"),
        "copied": Decimal("0.85"),
        "accepted": Decimal("0.8"),
        "edited": Decimal("0.75"),
        "compiled": Decimal("0.7"),
        "rejected": Decimal("-0.5"),
        "failed": Decimal("-1.0"),
        RETRACTED: Decimal(0),
    }
)

#: The signal vocabulary, best first.
SIGNALS: Final[tuple[str, ...]] = tuple(REWARDS)

#: The lowest good reward. It lies above the price of `compiled`, because compiling is not passing.
GOOD: Final = Decimal("0.71")

_RANK: Final[Mapping[str, int]] = MappingProxyType({source: rank for rank, source in enumerate(SOURCES)})


def reward_of(signal: str) -> Decimal:
    """The reward of `signal`, in [-1, 1]. Raises ValueError, naming the vocabulary, for any other word."""
    try:
        return REWARDS[signal]
    except KeyError:
        raise ValueError(f"Unknown signal {signal!r}; expected one of: {', '.join(SIGNALS)}.") from None


def is_good(reward: Decimal) -> bool:
    """Whether `reward` is high enough to learn from."""
    return reward >= GOOD


def loss_of(reward: Decimal) -> int | None:
    """1 for a loss (reward < 0), 0 for a win (reward > 0), None when the reward is 0: that is not scored."""
    if reward == 0:
        return None
    return int(reward < 0)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One outcome, as far as the choice between outcomes needs it."""

    id: UUID  # the outcome
    source: str  # who judged, one of SOURCES
    sequence: int  # this source's first, second, ... word on the interaction, from 1
    signal: str  # what was said, one of SIGNALS

    def __post_init__(self) -> None:
        if self.source not in _RANK:
            raise ValueError(f"Unknown source {self.source!r}; expected one of: {', '.join(SOURCES)}.")
        reward_of(self.signal)


def decide(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict that counts among all verdicts on one interaction; None when nobody has judged.

    The strongest source decides whose latest verdict (highest `sequence`) is not a retraction. The answer depends on
    the set of verdicts alone, never on their order.
    """
    latest: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = latest.get(verdict.source)
        if known is None or (verdict.sequence, verdict.id) > (known.sequence, known.id):
            latest[verdict.source] = verdict
    standing = (verdict for verdict in latest.values() if verdict.signal != RETRACTED)
    return min(standing, key=lambda verdict: _RANK[verdict.source], default=None)
