"""What was to be expected: the loss of a row if its lesson did nothing, with the sums as they stand today."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from memory.models.sql import fetch
from memory.rules import expectation
from memory.rules.expectation import Expectation, Tally
from memory.services.evidence import Row


@dataclass(frozen=True, kw_only=True)
class Withheld:
    """Interactions that were to go without a lesson."""

    n: int  # interactions
    tally: Tally  # losses, observed and expected


class Background:
    """Today's sums around the rows of some lessons, for the loss that each row was to expect without its lesson."""

    def __init__(self) -> None:
        self.source: dict[str, tuple[int, int]] = {}
        self.task: dict[str, Tally] = {}
        self.own_source: dict[tuple[UUID, str], tuple[int, int]] = {}
        self.own_task: dict[tuple[UUID, str], Tally] = {}
        self.lesson: dict[UUID, Tally] = {}
        self.pair: dict[tuple[UUID, UUID], Tally] = {}
        self.withheld: dict[UUID, dict[str, Withheld]] = {}  # by exposure
        self.cohort: dict[UUID, list[UUID]] = {}

    @classmethod
    def read(cls, account_id: UUID | None, lessons: Iterable[UUID], rows: Mapping[UUID, Sequence[Row]]) -> "Background":
        """A constant number of reads, each by index, whatever the size of the tables."""
        self = cls()
        ids = list(lessons)
        digests = list({row.task_digest for own in rows.values() for row in own})
        interactions = list({row.interaction for own in rows.values() for row in own})
        same, scope = ("account_id IS NULL", []) if account_id is None else ("account_id = %s", [account_id])
        for interaction, peer in fetch(
            "SELECT interaction_id, lesson_id FROM lesson_usage WHERE interaction_id = ANY(%s) "
            "AND exposure IN ('served', 'probation') ORDER BY 1, 2",
            [interactions],
        ):
            self.cohort.setdefault(interaction, []).append(peer)
        peers = list({peer for cohort in self.cohort.values() for peer in cohort})
        self.source = {
            s: (n, lost) for s, n, lost in fetch(f"SELECT source, n, losses FROM source_sum WHERE {same}", scope)
        }
        task = f"SELECT task_digest, o, e FROM task_sum WHERE {same} AND task_digest = ANY(%s)"
        self.task = {digest: _tally(o, e) for digest, o, e in fetch(task, [*scope, digests])}
        own = "SELECT lesson_id, source, n, losses FROM lesson_source_sum WHERE lesson_id = ANY(%s)"
        self.own_source = {(i, source): (n, lost) for i, source, n, lost in fetch(own, [ids])}
        own = (
            "SELECT lesson_id, task_digest, o, e FROM lesson_task_sum "
            "WHERE lesson_id = ANY(%s) AND task_digest = ANY(%s)"
        )
        self.own_task = {(i, digest): _tally(o, e) for i, digest, o, e in fetch(own, [ids, digests])}
        total = "SELECT lesson_id, o, e FROM lesson_sum WHERE lesson_id = ANY(%s)"
        self.lesson = {i: _tally(o, e) for i, o, e in fetch(total, [peers])}
        pair = "SELECT lesson_id, other_id, o, e FROM lesson_pair_sum WHERE lesson_id = ANY(%s) AND other_id = ANY(%s)"
        self.pair = {(a, b): _tally(o, e) for a, b, o, e in fetch(f"{pair} UNION {pair}", [ids, peers, peers, ids])}
        held = "SELECT lesson_id, exposure, n, o, e FROM withheld_sum WHERE lesson_id = ANY(%s)"
        for lesson, exposure, n, o, e in fetch(held, [ids]):
            self.withheld.setdefault(lesson, {})[exposure] = Withheld(n=n, tally=_tally(o, e))
        return self

    def expected(self, lesson: UUID, row: Row) -> Expectation:
        """The loss to expect in a row if the lesson did nothing."""
        n, losses = self.source.get(row.source, (0, 0))
        own_n, own_losses = self.own_source.get((lesson, row.source), (0, 0))
        task = self.task.get(row.task_digest, Tally())
        return expectation.expected_loss(
            losses=losses - own_losses,
            n=n - own_n,
            task=task.without(self.own_task.get((lesson, row.task_digest), Tally())),
            peers=[self._without(lesson, peer) for peer in self.cohort.get(row.interaction, ()) if peer != lesson],
            niche=self._niche(lesson),
        )

    def with_cohort(self, row: Row) -> Row:
        """The row with the number of lessons that were handed out together."""
        return replace(row, cohort=len(self.cohort.get(row.interaction, ())))

    def _without(self, lesson: UUID, peer: UUID) -> Tally:
        key = (lesson, peer) if lesson < peer else (peer, lesson)
        return self.lesson.get(peer, Tally()).without(self.pair.get(key, Tally()))

    def _niche(self, lesson: UUID) -> Tally:
        held = self.withheld.get(lesson, {}).values()
        return _tally(sum(w.tally.observed for w in held), sum(w.tally.expected for w in held))


def _tally(o: Any, e: Any) -> Tally:
    return Tally(observed=o, expected=e)
