"""The running sums as they stood at one moment of the log, in memory and exact.

Weights have 3 decimal places and expectations 12, so whole numbers of 10**-15 hold every sum without rounding, as the
store's own columns do; divided once, they give the very number that the store's rules were given.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final
from uuid import UUID

from memory.rules.expectation import Tally

PLACES: Final = 10**12  # of a stored expectation
WEIGHTED: Final = 10**15  # of a weight times an expectation

Pair = list[int]  # two sums, moved in place


def scaled(value: Decimal) -> int:
    """An expectation as a whole number of 10**-12."""
    return int(value.scaleb(12))


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """One scored interaction, as it stands now."""

    interaction: UUID
    seq: int  # credit_seq
    task: str  # digest of the normalised text
    b: int  # the judge's usual loss rate before it, in 10**-12
    cohort: "tuple[Known, ...]"  # lessons handed out
    held: "tuple[tuple[Known, int], ...]"  # lessons held back, with the expected loss of each in 10**-12
    source: str = ""  # who judges it now
    reward: Decimal | None = None  # None: every judge has retracted

    @property
    def loss(self) -> int:
        return int(self.reward is not None and self.reward < 0)


@dataclass(slots=True, kw_only=True, eq=False)
class Known:
    """One lesson's part of the sums."""

    id: UUID
    rows: list[Work] = field(default_factory=list)  # work that it was handed out for, in the order of crediting
    total: Pair = field(default_factory=lambda: [0, 0])  # weighted losses and expected ones, in 10**-15
    by_source: dict[str, Pair] = field(default_factory=dict)  # interactions and losses
    by_task: dict[str, Pair] = field(default_factory=dict)  # losses, and expected ones in 10**-12
    by_peer: "dict[Known, Pair]" = field(default_factory=dict)  # as `total`; each pair shares one list
    without: Pair = field(default_factory=lambda: [0, 0])  # losses, and expected ones in 10**-12


class Sums:
    """Every sum of one scope."""

    def __init__(self, weights: Mapping[str, Decimal]) -> None:
        self._thousandths = {source: int(weight * 1000) for source, weight in weights.items()}
        self.source: dict[str, Pair] = {}
        self.task: dict[str, Pair] = {}
        self.lessons: dict[UUID, Known] = {}

    def lesson(self, lesson: UUID) -> Known:
        found = self.lessons.get(lesson)
        if found is None:
            found = self.lessons[lesson] = Known(id=lesson)
        return found

    def add(self, work: Work) -> None:
        """Adds a scored interaction to every sum."""
        self._move(work, 1)

    def take_back(self, work: Work) -> None:
        """Takes it out again; it must be as it was when it was added."""
        self._move(work, -1)

    def _move(self, work: Work, sign: int) -> None:
        y, b = sign * work.loss, sign * work.b
        _by(self.source, work.source, sign, y)
        _by(self.task, work.task, y, b)
        weight = self._thousandths[work.source]
        o, e = weight * y * PLACES, weight * b
        for place, lesson in enumerate(work.cohort):
            _by(lesson.by_source, work.source, sign, y)
            _by(lesson.by_task, work.task, y, b)
            if weight:
                lesson.total[0] += o
                lesson.total[1] += e
                for other in work.cohort[:place]:
                    _shared(lesson, other, o, e)
        if weight:
            for lesson, expected in work.held:
                lesson.without[0] += y
                lesson.without[1] += sign * expected

    def source_without(self, lesson: Known, source: str) -> tuple[int, int]:
        """Interactions and losses of the judge without the lesson."""
        n, lost = self.source.get(source, (0, 0))
        own_n, own_lost = lesson.by_source.get(source, (0, 0))
        return n - own_n, lost - own_lost

    def task_without(self, lesson: Known, task: str) -> Tally:
        o, e = self.task.get(task, (0, 0))
        own_o, own_e = lesson.by_task.get(task, (0, 0))
        return Tally(observed=o - own_o, expected=(e - own_e) / PLACES)

    def peer_without(self, lesson: Known, peer: Known) -> Tally:
        """The peer's weighted sums over the interactions that did not have the lesson."""
        o, e = lesson.by_peer.get(peer, (0, 0))
        return Tally(observed=(peer.total[0] - o) / WEIGHTED, expected=(peer.total[1] - e) / WEIGHTED)

    def niche(self, lesson: Known) -> Tally:
        return Tally(observed=lesson.without[0], expected=lesson.without[1] / PLACES)


def _by(sums: dict[str, Pair], key: str, first: int, second: int) -> None:
    pair = sums.get(key)
    if pair is None:
        sums[key] = [first, second]
    else:
        pair[0] += first
        pair[1] += second


def _shared(lesson: Known, other: Known, o: int, e: int) -> None:
    pair = lesson.by_peer.get(other)
    if pair is None:
        pair = lesson.by_peer[other] = other.by_peer[lesson] = [0, 0]
    pair[0] += o
    pair[1] += e


def scored(lesson: Known, sources: Iterable[str]) -> int:
    """How often work with the lesson was scored by these judges."""
    return sum(lesson.by_source.get(source, (0, 0))[0] for source in sources)


def newest(rows: Sequence[Work], sources: frozenset[str], after: int, excused: frozenset[UUID]) -> Iterable[Work]:
    """The rows that count, newest first: scored by one of these judges, after a release, not excused by a person."""
    for work in reversed(rows):
        if work.seq <= after:
            return
        if work.reward is None or work.source not in sources:
            continue
        if not excused or work.interaction not in excused:
            yield work
