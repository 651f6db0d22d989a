"""The relevance gate: is a lesson about the task at all? Nothing is a right answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Reason = Literal["", "below_similarity", "uncorroborated", "no_anchors"]

#: Content words (stems) that task and lesson must share before words corroborate a similarity. One is chance.
MIN_ANCHORS: Final = 2

#: Share of a sample of lessons, the most similar ones, whose mean similarity tells whether a task is of the store's kind.
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
    """Weights and threshold of the calibrated gate, fitted for one embedding space and stored with it."""

    support_weight: float  # weight of the support, a cosine
    coverage_weight: float  # weight of the coverage, a share in [0, 1]
    anchor_bonus: float  # added when two anchors are shared
    min_score: float  # the score from which a lesson passes

    def score(self, *, cosine: float, support: float, coverage: float, shared_anchors: int) -> float:
        """cosine + support_weight * support + coverage_weight * coverage, and the bonus for two shared anchors."""
        bonus = self.anchor_bonus if shared_anchors >= MIN_ANCHORS else 0.0
        return cosine + self.support_weight * support + self.coverage_weight * coverage + bonus


def supported_gate(
    *, cosine: float | None, support: float, coverage: float, shared_anchors: int, fitted: SupportGate
) -> GateResult:
    """The calibrated gate: a modest similarity is enough where the task as a whole is of the store's kind.

    A task about the store's subject is mildly similar to many lessons, an off-domain question to none, whatever its
    one best match says; `support` measures that. `coverage` is the share of the task's inverse document frequency that
    the shared stems carry. Without an embedding (`cosine` None) words decide. A passing lesson of low cosine owes
    that to the support, so an explanation should show all four numbers.
    """
    if cosine is None:
        return lexical_gate(shared_anchors)
    score = fitted.score(cosine=cosine, support=support, coverage=coverage, shared_anchors=shared_anchors)
    return PASSED if score >= fitted.min_score else GateResult(passed=False, reason="below_similarity")


def support(cosines: Sequence[float]) -> float:
    """The mean of the highest fifth of `cosines`, the task's with a fixed sample of the space's lessons.

    A sample (some 200 lessons, the same for every task) makes the number independent of the store's size, which a
    mean over the best n candidates is not: it grows with every lesson added. The empty sample supports nothing: 0.0.
    """
    if not cosines:
        return 0.0
    highest = sorted(cosines, reverse=True)[: max(1, round(len(cosines) * SUPPORT_SHARE))]
    return math.fsum(highest) / len(highest)
