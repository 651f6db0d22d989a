"""Starting thresholds for known models. A space copies them when it is opened and owns them from then on."""

from dataclasses import dataclass
from typing import Final

from memory.rules.relevance import SupportGate, Thresholds


@dataclass(frozen=True, kw_only=True)
class SpacePreset:
    """Cosines in [-1, 1]; each holds for one model only."""

    min_similarity: float  # relevant, if two content words are shared too
    uncorroborated_min_similarity: float  # relevant without shared words
    duplicate_similarity: float  # a new lesson says what one already says, if both make the same claim
    prune_similarity: float  # two stored lessons may be merged, if both make the same claim
    tombstone_similarity: float  # a new lesson repeats a rejected one, if both make the same claim
    contradiction_similarity: float  # near enough for opposite claims to contradict each other
    support_gate: SupportGate | None  # a second way through the relevance gate, where it was fitted
    measured: bool  # whether real lessons settled the numbers, or caution did until `calibrate` runs

    @property
    def thresholds(self) -> Thresholds:
        """The fixed relevance gate's part."""
        return Thresholds(
            min_similarity=self.min_similarity, uncorroborated_min_similarity=self.uncorroborated_min_similarity
        )


#: Measured on 604 real lessons, 78 tasks and 48 off-domain questions. No off-domain question scores above 0.417 with
#: any lesson, or above 0.348 with one that shares two stems, and none has a support above 0.137; no fitting pair lies
#: between 0.342 and 0.401. With nothing returned off-domain, the fixed gate keeps 88% of the fitting lessons among the
#: first five of the fused order, and 96% with the support gate.
#: Opposites reach higher cosines (up to 0.99) than paraphrases (0.71 to 0.98), so no duplicate threshold is safe
#: without comparing claims; 0.92 is above the nearest pair of different meaning and equal polarity (0.917).
MINILM: Final = SpacePreset(
    min_similarity=0.38,
    uncorroborated_min_similarity=0.46,
    duplicate_similarity=0.92,
    prune_similarity=0.93,
    tombstone_similarity=0.92,
    contradiction_similarity=0.80,
    support_gate=SupportGate(min_support=0.15, min_similarity=0.30),
    measured=True,
)

#: The reference system's values, measured there on 557 lessons.
NOMIC: Final = SpacePreset(
    min_similarity=0.62,
    uncorroborated_min_similarity=0.70,
    duplicate_similarity=0.92,
    prune_similarity=0.93,
    tombstone_similarity=0.92,
    contradiction_similarity=0.80,
    support_gate=None,
    measured=True,
)

#: The test provider's vectors count shared words; unrelated texts are near 0.
HASHING: Final = SpacePreset(
    min_similarity=0.20,
    uncorroborated_min_similarity=0.50,
    duplicate_similarity=0.92,
    prune_similarity=0.93,
    tombstone_similarity=0.92,
    contradiction_similarity=0.80,
    support_gate=None,
    measured=False,
)

#: Models differ by a factor of two in what a similar pair scores. Where nothing was measured, few and certain lessons
#: are better than many doubtful ones, and nothing is merged that is not all but identical.
CAUTIOUS: Final = SpacePreset(
    min_similarity=0.70,
    uncorroborated_min_similarity=0.80,
    duplicate_similarity=0.95,
    prune_similarity=0.97,
    tombstone_similarity=0.95,
    contradiction_similarity=0.85,
    support_gate=None,
    measured=False,
)

_KNOWN: Final = {
    "all-minilm-l6-v2": MINILM,
    "nomic-embed-text": NOMIC,
    "nomic-embed-text-v1.5": NOMIC,
    "hashing": HASHING,
}


def preset_for(model: str) -> SpacePreset:
    """The preset for a model's name, with or without its organisation and tag (`org/name:tag`); CAUTIOUS if unknown."""
    return _KNOWN.get(model.rsplit("/", 1)[-1].split(":", 1)[0].casefold(), CAUTIOUS)
