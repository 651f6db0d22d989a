"""What a run has shown, as its summary tells it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: Every reason of a distillation that an agent and an operator can bring about.
REASONS: Final = (
    "stored", "not_concrete", "exact_duplicate", "semantic_duplicate", "rejected_value", "private", "contradicted",
    "no_candidate", "cancelled_by_operator",
)  # fmt: skip
#: Those that need a language model which fails.
MODEL_REASONS: Final = ("distiller_error", "attempts_exhausted")
#: What else a store shows that keeps itself in order: moves of the harmful lesson, and two things for a person.
MOVES: Final = ("quarantined", "rehabilitated")
CONTRADICTION, PRUNE_PLAN = "contradiction", "prune plan"


@dataclass(kw_only=True)
class Told:
    """Filled while a run is played, and once more when it has ended."""

    interactions: int = 0
    seconds: float = 0.0  # that playing took
    waited: float = 0.0  # seconds of these spent waiting for the worker
    outcomes: Counter[str] = field(default_factory=Counter)  # by signal
    open: int = 0  # distillations that have not ended
    events: list[str] = field(default_factory=list)  # what happened to the harmful lesson, oldest first
    shown: dict[str, int] = field(default_factory=dict)  # what should come of a run -> how often it has

    @property
    def missing(self) -> list[str]:
        """What should have come of it, and has not."""
        return [name for name, n in self.shown.items() if not n]

    def look(
        self, reasons: Iterable[str], rows: Iterable[Mapping[str, Any]], contradictions: int, clusters: int
    ) -> None:
        """Counts what has come of it by now; `rows` are the run's distillations, `reasons` those that must be seen."""
        ended = Counter(row["result_reason"] for row in rows)
        self.open = ended.pop(None, 0)
        moves = Counter(self.events)
        self.shown = {reason: ended[reason] for reason in reasons}
        self.shown |= {kind: moves[kind] for kind in MOVES}
        self.shown |= {CONTRADICTION: contradictions, PRUNE_PLAN: clusters}
