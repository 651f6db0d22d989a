"""The relevance gate: is a lesson about the task at all? Nothing is a right answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Reason = Literal["", "below_similarity", "uncorroborated", "no_anchors", "not_embedded"]

#: Content words (stems) that task and lesson must share before words corroborate a similarity. One is chance.
MIN_ANCHORS: Final = 2

#: Share of a sample of lessons, the most similar ones, whose mean similarity tells whether a task is the store's kind.
SUPPORT_SHARE: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Cosines in [-1, 1], valid in one embedding space only."""

    min_similarity: float  # enough with two shared anchors
    uncorroborated_min_similarity: float  # enough alone

    def __post_init__(self) -> None:
        if not -1 <= self.min_similarity <= self.uncorroborated_min_similarity <= 1:
            raise ValueError(
                f"Thresholds must be ordered within [-1, 1]: min_similarity {self.min_similarity} may not exceed "
                f"uncorroborated_min_similarity {self.uncorroborated_min_similarity}."
            )


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """Whether a candidate may be handed out, and if not, why."""

    passed: bool
    reason: Reason  # empty when passed

    def __post_init__(self) -> None:
        if self.passed == bool(self.reason):
            raise ValueError("A refusal has a reason and a pass has none.")


PASSED: Final = GateResult(passed=True, reason="")


def gate(*, cosine: float | None, shared_anchors: int, thresholds: Thresholds) -> GateResult:
    """The fixed gate: similar enough alone, or less similar and corroborated by two shared content words.

    `cosine` in [-1, 1] is the query's with the lesson; None means that there is no usable embedding, and words decide.
    """
    if cosine is None:
        return lexical_gate(shared_anchors)
    if cosine >= thresholds.uncorroborated_min_similarity:
        return PASSED
    if not cosine >= thresholds.min_similarity:  # written so that NaN is refused
        return GateResult(passed=False, reason="below_similarity")
    if shared_anchors < MIN_ANCHORS:
        return GateResult(passed=False, reason="uncorroborated")
    return PASSED


def lexical_gate(shared_anchors: int) -> GateResult:
    """The gate without embeddings: two shared content words."""
    return PASSED if shared_anchors >= MIN_ANCHORS else GateResult(passed=False, reason="no_anchors")


@dataclass(frozen=True, kw_only=True)
class SupportGate:
    """Where a task as a whole is of the store's kind, less similarity is asked of each lesson. Fitted for one space."""

    min_support: float  # the task's `support`, a mean cosine, from which it is
    min_similarity: float  # the cosine that is then enough, alone

    def __post_init__(self) -> None:
        if not (-1 <= self.min_support <= 1 and -1 <= self.min_similarity <= 1):
            raise ValueError(
                f"A support of {self.min_support} or a cosine of {self.min_similarity} is outside [-1, 1]."
            )


def supported_gate(
    *, cosine: float | None, shared_anchors: int, support: float, thresholds: Thresholds, supported: SupportGate
) -> GateResult:
    """The calibrated gate: the fixed one, and a second way through for tasks of the store's kind.

    A task about the store's subject is mildly similar to many lessons, an off-domain question to hardly any, whatever
    its one best match says. `support` measures that, and a lesson of modest cosine passes on its strength.
    """
    if cosine is not None and support >= supported.min_support and cosine >= supported.min_similarity:
        return PASSED
    return gate(cosine=cosine, shared_anchors=shared_anchors, thresholds=thresholds)


def support(cosines: Sequence[float]) -> float:
    """The mean of the highest fifth of `cosines`, the task's with a fixed sample of the space's lessons.

    A sample (some 500 lessons, the same for every task) makes the number independent of the store's size, which a
    mean over the best n candidates is not: it grows with every lesson added. Below some 100 lessons the number is
    noisy and the fixed gate is the better judge. The empty sample supports nothing: 0.0.
    """
    if not cosines:
        return 0.0
    highest = sorted(cosines, reverse=True)[: max(1, round(len(cosines) * SUPPORT_SHARE))]
    return math.fsum(highest) / len(highest)
