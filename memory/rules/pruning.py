"""Which of several lessons that say the same is kept, and which of two rows of evidence counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Contender:
    """What decides whether a lesson is kept."""

    lesson: UUID
    caller: int  # interactions with it that a caller judged
    machine: int  # interactions with it that the runtime judged
    wins: int  # credited rewards above 0 among both
    length: int  # characters of its text
    created: float  # Unix time, seconds
    reviewed: bool = False  # a person approved this wording

    @property
    def place(self) -> tuple[Any, ...]:
        """Sorts before others what is kept: most caller evidence, then most machine evidence, more wins, longer, older.

        Classes are compared one after the other and never added up: a lesson that a caller accepted at 0.8 is kept
        before one that the machine graded 1.0 a hundred times.
        """
        return (-self.caller, -self.machine, -self.wins, -self.length, self.created, self.lesson)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two lessons with near vectors."""

    first: UUID  # the smaller id
    second: UUID
    cosine: float  # in [-1, 1]


def pair_of(a: UUID, b: UUID, cosine: float) -> Pair:
    """The pair of two different lessons, in either order."""
    return Pair(first=min(a, b), second=max(a, b), cosine=cosine)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A lesson that its cluster's keeper makes superfluous."""

    lesson: UUID
    cosine: float  # with the keeper


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A lesson that is kept, and what says the same. Every member is near the keeper, so that no chain grows."""

    keeper: UUID
    members: tuple[Member, ...]  # nearest first; at least one


def clusters(contenders: Iterable[Contender], pairs: Iterable[Pair]) -> list[Cluster]:
    """Clusters of lessons that say the same, best keeper first; a lesson is in one of them at most.

    `pairs` are those that are near and make the same claim; a pair without a contender of each side is ignored. Lessons
    are taken in the order of `Contender.place`, and each that is not yet a member keeps the lessons that it is paired
    with and that are not placed before it. So A near B near C with A far from C gives A and B, and leaves C. What a
    person approved is never removed in favour of what nobody read: where both rules speak, both lessons stay.
    """
    known = {c.lesson: c for c in contenders}
    near: dict[UUID, dict[UUID, float]] = {}
    for pair in pairs:
        if pair.first in known and pair.second in known:
            near.setdefault(pair.first, {})[pair.second] = pair.cosine
            near.setdefault(pair.second, {})[pair.first] = pair.cosine
    taken: set[UUID] = set()
    found = []
    for keeper in sorted((known[lesson] for lesson in near), key=lambda c: c.place):
        if keeper.lesson in taken:
            continue
        members = [
            Member(lesson=lesson, cosine=cosine)
            for lesson, cosine in near[keeper.lesson].items()
            if lesson not in taken
            and known[lesson].place > keeper.place
            and (keeper.reviewed or not known[lesson].reviewed)
        ]
        if members:
            members.sort(key=lambda m: (-m.cosine, m.lesson))
            taken |= {keeper.lesson, *(m.lesson for m in members)}
            found.append(Cluster(keeper=keeper.lesson, members=tuple(members)))
    return found


def best(contenders: Sequence[Contender]) -> UUID:
    """Which of the lessons of a cluster is kept. Raises ValueError if there are none."""
    return min(contenders, key=lambda c: c.place).lesson


def why_kept(keeper: Contender, others: Sequence[Contender]) -> str:
    """The first thing that sets the kept lesson apart from every other: evidence, wins, length, age, in that order."""
    ahead = (
        (keeper.caller, [o.caller for o in others], "callers judged it more often"),
        (keeper.machine, [o.machine for o in others], "the runtime judged it more often"),
        (keeper.wins, [o.wins for o in others], "it has more wins"),
        (keeper.length, [o.length for o in others], "its text is longer"),
    )
    for mine, theirs, words in ahead:
        if all(mine > value for value in theirs):
            return f"{words}: {mine} against {max(theirs)}"
        if any(mine != value for value in theirs):
            return "it has the best record of them, taken class by class"
    return "nothing sets them apart but its age"


@dataclass(frozen=True, kw_only=True)
class Exposed:
    """One of two rows of evidence, when two lessons that become one were in the same interaction."""

    handed_out: bool  # served or probation; else it is a control, withheld
    exempted: bool  # a person said that this loss was not this lesson's


def counted(keeper: Exposed, member: Exposed) -> Literal["keeper", "member"]:
    """Whose row counts where both have one; the other is dropped, since one lesson has one row for an interaction.

    The text was in front of the agent if either lesson was, so that a row that was handed out beats one that was
    withheld. Else a person's word about a row decides, else the keeper's own row stays.
    """
    if keeper.handed_out != member.handed_out:
        return "keeper" if keeper.handed_out else "member"
    return "member" if member.exempted and not keeper.exempted else "keeper"
