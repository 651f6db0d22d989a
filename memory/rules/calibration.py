"""Fitting the relevance gate of one embedding space to questions whose answers are known.

Two kinds of questions are looked at: tasks that some lesson fits, and off-domain questions, which none does. A
threshold lies above everything that the off-domain questions reach, by a margin for those that were not asked: in the
tail of their scores, excesses are taken as exponential (peaks over threshold: Pickands 1975, Statistical inference
using extreme order statistics, Annals of Statistics 3:119-131), and the threshold is where a share of FALSE_RATE is
expected beyond it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.rules.health import wilson
from memory.rules.relevance import SupportGate, Thresholds, gate, supported_gate

#: Share of off-domain questions that each way through the gate may let pass. 3 in 1,000.
FALSE_RATE: Final = 0.003
#: Share of fitting lessons that may be less similar than what is asked of any lesson.
LOST: Final = 0.02
#: Share of the scores that are the tail, and the fewest that tell its scale.
TAIL: Final = 0.25
FEWEST_IN_TAIL: Final = 5
#: The least distance of a threshold from the highest score that it must keep out.
LEAST_MARGIN: Final = 0.01
#: Fewer tasks with a fitting lesson, or fewer off-domain questions, are no ground for thresholds.
ENOUGH: Final = 30
FOLDS: Final = 5
_STEPS: Final = 1000  # thresholds are rounded to thousandths, away from what they must keep out


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A question beside one lesson."""

    cosine: float  # in [-1, 1]
    shared_anchors: int  # content words that both have
    fits: bool = False  # the lesson is known to be right for the question


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with the lessons that were considered for it, best first. Off-domain: none of them fits."""

    pairs: tuple[Pair, ...]
    support: float | None = None  # its mean similarity with the store, in [-1, 1]; None: the store is too small


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The relevance gate of a space."""

    thresholds: Thresholds
    supported: SupportGate | None  # the second way through, for tasks of the store's kind

    def passes(self, question: Question, pair: Pair) -> bool:
        """Whether retrieval may hand out this lesson for this question."""
        if self.supported is None or question.support is None:
            return gate(cosine=pair.cosine, shared_anchors=pair.shared_anchors, thresholds=self.thresholds).passed
        return supported_gate(
            cosine=pair.cosine,
            shared_anchors=pair.shared_anchors,
            support=question.support,
            thresholds=self.thresholds,
            supported=self.supported,
        ).passed

    def answer(self, question: Question, k: int) -> list[Pair]:
        """The first `k` lessons that pass, in their order."""
        return [pair for pair in question.pairs if self.passes(question, pair)][:k]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a gate does to questions that it was not fitted to."""

    tasks: int  # with a fitting lesson
    found: int  # of them, those whose answer of at most k has a fitting lesson
    off_domain: int  # questions that no lesson fits
    noisy: int  # of them, those that get a lesson all the same

    @property
    def recall(self) -> tuple[float, float, float]:
        """The share found with its 95% Wilson interval: share, low, high."""
        return _share(self.found, self.tasks)

    @property
    def noise(self) -> tuple[float, float, float]:
        """The share of off-domain questions that get a lesson, with its 95% Wilson interval."""
        return _share(self.noisy, self.off_domain)


def _share(part: int, whole: int) -> tuple[float, float, float]:
    interval = wilson(part, whole)
    return (part / whole if whole else 0.0), interval.low, interval.high


def missing(tasks: int, off_domain: int) -> tuple[int, int]:
    """How many tasks with a fitting lesson and how many off-domain questions are wanting for a fit."""
    return max(0, ENOUGH - tasks), max(0, ENOUGH - off_domain)


def tail_bound(scores: Sequence[float], rate: float) -> float:
    """What a share `rate` of further scores is expected to exceed, and LEAST_MARGIN above the highest of these.

    Raises ValueError without scores.
    """
    return max(expected_beyond(scores, rate), max(scores) + LEAST_MARGIN)


def expected_beyond(scores: Sequence[float], rate: float) -> float:
    """The value that a share `rate` of further scores is expected to exceed.

    The tail is the highest quarter. Its r of the n scores exceed the next lower one by beta on average, and far out
    the value is that score + beta * ln(r / (n * rate)); within the scores it is one of them. Raises ValueError without
    scores.
    """
    ordered = sorted(scores, reverse=True)
    n = len(ordered)
    if not n:
        raise ValueError("No scores, so there is no tail.")
    r = min(n - 1, max(FEWEST_IN_TAIL, int(n * TAIL)))
    if rate * n >= r:
        return ordered[min(n - 1, int(rate * n))]
    start = ordered[r]
    beta = math.fsum(score - start for score in ordered[:r]) / r
    return start + beta * math.log(r / (n * rate))


def fit(tasks: Sequence[Question], off_domain: Sequence[Question], *, false_rate: float = FALSE_RATE) -> Gate:
    """The gate that keeps every off-domain question out, with a margin, and is as open as that allows.

    Four numbers. The support from which a task is of the store's kind, where supports are known; and the cosine that
    is then enough, which all but LOST of the fitting lessons have. For other tasks the cosine that is enough alone;
    and the one that two shared words corroborate, just above the highest that any off-domain question reached: that
    two words agree by chance as well is rare enough to be the margin. The cosines keep this order.

    Raises ValueError without tasks or off-domain questions, or where one of these is the very text of a lesson.
    """
    fitting = [best for task in tasks if (best := _best([pair for pair in task.pairs if pair.fits])) is not None]
    if not fitting or not off_domain:
        raise ValueError("A gate is fitted to tasks with a fitting lesson and to off-domain questions; one is wanting.")
    highest = [max((pair.cosine for pair in question.pairs), default=-1.0) for question in off_domain]
    if max(highest) >= 1 - 1 / _STEPS:
        raise ValueError("An off-domain question says what a lesson says: no threshold keeps it out.")
    floor = max(-1.0, _down(-expected_beyond([-cosine for cosine in fitting], LOST)))
    alone = max(floor, _up(tail_bound(highest, false_rate)))
    corroborated = max(floor, min(alone, _up(max(highest) + LEAST_MARGIN)))
    supported = _supported(off_domain, floor, false_rate) if any(t.support is not None for t in tasks) else None
    return Gate(
        thresholds=Thresholds(min_similarity=corroborated, uncorroborated_min_similarity=alone), supported=supported
    )


def _supported(off_domain: Sequence[Question], floor: float, false_rate: float) -> SupportGate | None:
    """None where no off-domain question has a support, or no task's could exceed theirs."""
    supports = [question.support for question in off_domain if question.support is not None]
    if not supports:
        return None
    least = _up(tail_bound(supports, false_rate))
    return SupportGate(min_support=least, min_similarity=floor) if max(supports) < least else None


def _best(pairs: Sequence[Pair]) -> float | None:
    return max((pair.cosine for pair in pairs), default=None)


def _up(value: float) -> float:
    return min(1.0, math.ceil(value * _STEPS) / _STEPS)


def _down(value: float) -> float:
    return math.floor(value * _STEPS) / _STEPS


def folds(n: int, of: int = FOLDS) -> list[list[int]]:
    """The indices 0 to n - 1 in `of` parts that differ by one at most, neighbours in different ones.

    Without chance, so that a figure can be had again: whoever wants another division gives another order.
    """
    return [list(range(start, n, of)) for start in range(of)]


def without(questions: Sequence[Question], left_out: Sequence[int]) -> list[Question]:
    """The questions but for those at the indices."""
    out = set(left_out)
    return [question for i, question in enumerate(questions) if i not in out]


def expect(gate_: Gate, tasks: Sequence[Question], off_domain: Sequence[Question], k: int) -> Expected:
    """What the gate does to these questions."""
    return Expected(
        tasks=len(tasks),
        found=sum(any(pair.fits for pair in gate_.answer(task, k)) for task in tasks),
        off_domain=len(off_domain),
        noisy=sum(bool(gate_.answer(question, k)) for question in off_domain),
    )


def cross_validated(tasks: Sequence[Question], off_domain: Sequence[Question], k: int) -> Expected:
    """What a gate fitted so does to questions that it was not fitted to: each fifth judged by the other four.

    Raises ValueError as `fit` does.
    """
    judged = [
        expect(
            fit(without(tasks, some), without(off_domain, others)),
            [tasks[i] for i in some],
            [off_domain[i] for i in others],
            k,
        )
        for some, others in zip(folds(len(tasks)), folds(len(off_domain)), strict=True)
    ]
    return Expected(
        tasks=sum(each.tasks for each in judged),
        found=sum(each.found for each in judged),
        off_domain=sum(each.off_domain for each in judged),
        noisy=sum(each.noisy for each in judged),
    )
