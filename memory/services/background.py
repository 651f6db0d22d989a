"""What was to be expected: the loss of a row if its lesson did nothing, with the sums as they stand today."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
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


# Every sum that an expectation is made of, in one read: a page and a credit make many, and each way there costs more
# than what is fetched.
_SUMS = """
    SELECT 'source', NULL::uuid, NULL::uuid, source, n, losses, NULL::numeric, NULL::numeric
        FROM source_sum WHERE {same}
    UNION ALL SELECT 'task', NULL, NULL, task_digest, NULL, NULL, o, e
        FROM task_sum WHERE {same} AND task_digest = ANY(%(digests)s)
    UNION ALL SELECT 'own_source', lesson_id, NULL, source, n, losses, NULL, NULL
        FROM lesson_source_sum WHERE lesson_id = ANY(%(lessons)s)
    UNION ALL SELECT 'own_task', lesson_id, NULL, task_digest, NULL, NULL, o, e
        FROM lesson_task_sum WHERE lesson_id = ANY(%(lessons)s) AND task_digest = ANY(%(digests)s)
    UNION ALL SELECT 'lesson', lesson_id, NULL, NULL, NULL, NULL, o, e FROM lesson_sum WHERE lesson_id = ANY(%(peers)s)
    UNION ALL SELECT 'pair', lesson_id, other_id, NULL, NULL, NULL, o, e
        FROM lesson_pair_sum WHERE lesson_id = ANY(%(lessons)s) AND other_id = ANY(%(peers)s)
    UNION ALL SELECT 'pair', lesson_id, other_id, NULL, NULL, NULL, o, e
        FROM lesson_pair_sum WHERE lesson_id = ANY(%(peers)s) AND other_id = ANY(%(lessons)s)
    UNION ALL SELECT 'withheld', lesson_id, NULL, exposure, n, NULL, o, e
        FROM withheld_sum WHERE lesson_id = ANY(%(lessons)s)
"""


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
        """Two reads, each by index, whatever the size of the tables."""
        self = cls()
        ids = list(lessons)
        digests = list({row.task_digest for own in rows.values() for row in own})
        interactions = list({row.interaction for own in rows.values() for row in own})
        for interaction, peer in fetch(
            "SELECT interaction_id, lesson_id FROM lesson_usage WHERE interaction_id = ANY(%s) "
            "AND exposure IN ('served', 'probation') ORDER BY 1, 2",
            [interactions],
        ):
            self.cohort.setdefault(interaction, []).append(peer)
        peers = list({peer for cohort in self.cohort.values() for peer in cohort})
        same = "account_id IS NULL" if account_id is None else "account_id = %(account)s"
        known = {"account": account_id, "lessons": ids, "digests": digests, "peers": peers}
        for row in fetch(_SUMS.format(same=same), known):
            self._take(*row)
        return self

    def _take(
        self, table: str, lesson: UUID, other: UUID, word: str, n: int, losses: int, o: Decimal, e: Decimal
    ) -> None:
        """One sum; which of the values it has, its table says."""
        match table:
            case "source":
                self.source[word] = (n, losses)
            case "task":
                self.task[word] = _tally(o, e)
            case "own_source":
                self.own_source[lesson, word] = (n, losses)
            case "own_task":
                self.own_task[lesson, word] = _tally(o, e)
            case "lesson":
                self.lesson[lesson] = _tally(o, e)
            case "pair":
                self.pair[lesson, other] = _tally(o, e)
            case "withheld":
                self.withheld.setdefault(lesson, {})[word] = Withheld(n=n, tally=_tally(o, e))

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
