"""Putting right what `doctor` finds and what can be computed again from what is kept. Loses nothing, moves no state."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from memory.embedding.active import usable_space
from memory.models import EmbeddingSpace, Lesson
from memory.models.sql import execute, fetch
from memory.rules.text import identifiers
from memory.services import space as spaces
from memory.services import tombstone
from memory.services.credit import sweep
from memory.services.standing import rebuild_standings, rebuild_sums

BATCH: Final = 1000  # lessons read at once


@dataclass(frozen=True, kw_only=True)
class Unsearchable:
    """A lesson whose code cannot be found by its words."""

    lesson: UUID
    names: list[str]  # the identifiers that its text has


def unsearchable() -> Iterator[list[Unsearchable]]:
    """Lessons whose column `identifiers` is not what their text says, batch by batch; a batch may be empty."""
    after = UUID(int=0)
    while batch := fetch(
        "SELECT id, text, tsvector_to_array(identifiers) FROM lesson WHERE id > %s ORDER BY id LIMIT %s",
        [after, BATCH],
    ):
        found = [(lesson, identifiers(text), kept) for lesson, text, kept in batch]
        yield [Unsearchable(lesson=lesson, names=names) for lesson, names, kept in found if set(names) != set(kept)]
        after = batch[-1][0]


def _search_columns() -> None:
    for batch in unsearchable():
        execute(
            """
            UPDATE lesson l SET identifiers = array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(n.names)))
            FROM unnest(%s::uuid[], %s::jsonb[]) AS n(id, names) WHERE l.id = n.id
            """,
            [[found.lesson for found in batch], [Jsonb(found.names) for found in batch]],
        )


def _indexes() -> None:
    for space in EmbeddingSpace.objects.filter(is_active=True):
        spaces.build_indexes(space)


def _vectors() -> None:
    space = usable_space()
    spaces.unpark(space)
    while batch := spaces.missing(space, spaces.BATCH):
        spaces.embed(batch, space)


def _tombstone_vectors() -> None:
    for space in EmbeddingSpace.objects.filter(is_active=True):
        tombstone.follow(space)


def _credit() -> None:
    while sweep():
        pass


def _standings() -> None:
    for _ in rebuild_standings():
        pass


def _sums() -> None:
    rebuild_sums()
    _standings()


#: What puts a finding right, by the name of its check. Must not run in a transaction.
REPAIRS: Final[Mapping[str, Callable[[], None]]] = {
    "vector indexes": _indexes,
    "vectors": _vectors,
    "search columns": _search_columns,
    "credit": _credit,
    "sums": _sums,
    "standings": _standings,
    "tombstone vectors": _tombstone_vectors,
}


def unjudged() -> int:
    """How many lessons have evidence and no standing."""
    judged = Lesson.objects.filter(lessonsourcesum__isnull=False, lessonstanding__isnull=True)
    return judged.distinct().count()
