"""Lessons that may contradict each other and about which nobody has decided: only one of the two is handed out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory.models.sql import fetch
from memory.rules.contradiction import Judged, standing_in_answer


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """An open contradiction, with how well callers speak for each side."""

    first: UUID
    second: UUID
    first_standing: float
    second_standing: float

    def loser(self, order: Sequence[UUID]) -> UUID:
        """The side with less to say for it; where callers say the same of both, the one that comes later in `order`."""
        if self.first_standing == self.second_standing:
            return max(self.first, self.second, key=order.index)
        return self.first if self.first_standing < self.second_standing else self.second


_STATEMENT = """
    SELECT c.first, c.second, coalesce(a.n, 0), coalesce(a.reward, 0), coalesce(b.n, 0), coalesce(b.reward, 0)
    FROM contradiction c
        LEFT JOIN lesson_source_sum a ON a.lesson_id = c.first AND a.source = 'caller'
        LEFT JOIN lesson_source_sum b ON b.lesson_id = c.second AND b.source = 'caller'
    WHERE c.verdict IS NULL AND c.first = ANY(%(ids)s) AND c.second = ANY(%(ids)s)
"""


def conflicts(ids: Collection[UUID]) -> list[Conflict]:
    """The open contradictions among these lessons."""
    if len(ids) < 2:
        return []
    return [
        Conflict(
            first=first,
            second=second,
            first_standing=standing_in_answer(Judged(n=first_n, reward=float(first_reward))),
            second_standing=standing_in_answer(Judged(n=second_n, reward=float(second_reward))),
        )
        for first, second, first_n, first_reward, second_n, second_reward in fetch(_STATEMENT, {"ids": list(ids)})
    ]


def losers(open_conflicts: Collection[Conflict], chosen: Sequence[UUID]) -> set[UUID]:
    """Of the lessons of an answer, in its order, those that must go because the other side is in it too."""
    return {c.loser(chosen) for c in open_conflicts if c.first in chosen and c.second in chosen}
