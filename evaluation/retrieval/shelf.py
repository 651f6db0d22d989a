"""A store for one evaluation: temporary tables that stand before the store's own and are gone with the transaction.

The product's own retrieval then reads them without knowing. The store's tables are neither read nor written, not even
their statistics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db import connection, transaction
from pgvector import HalfVector

from memory.embedding.active import provider
from memory.embedding.presets import preset_for
from memory.models import EmbeddingSpace
from memory.models.lesson import SIMILARITIES
from memory.models.sql import execute, fetch
from memory.rules.text import digest, identifiers
from memory.search.support import samples
from memory.search.terms import statistics

TABLES: Final = ("lesson", "lesson_embedding", "lesson_source_sum", "lesson_standing", "contradiction")
BATCH: Final = 32  # texts embedded at once


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """The lessons of an evaluation, ready to be searched."""

    space: EmbeddingSpace  # with the thresholds that a new store starts with; in no table
    ids: Mapping[str, UUID]  # by the lessons' own ids


@contextmanager
def shelf(texts: Mapping[str, str], tell: Callable[[int], None] = lambda done: None) -> Iterator[Shelf]:
    """Lessons by their own ids, in tables of their own until the block ends. Raises EmbeddingUnavailable.

    Their ids here follow from their own, so that the same lessons give the same figures.
    """
    vectors = _embedded(list(texts.values()), tell)
    space, ids = _space(), {name: uuid5(NAMESPACE_URL, name) for name in texts}
    try:
        with transaction.atomic():
            _make_tables()
            _fill(space, [(ids[name], text) for name, text in texts.items()], vectors)
            _forget()
            yield Shelf(space=space, ids=ids)
            transaction.set_rollback(True)
    finally:
        _forget()


def _forget() -> None:
    """What this process remembers of the words and vectors of the tables that it read before."""
    statistics.forget()
    samples.forget()


def _embedded(texts: Sequence[str], tell: Callable[[int], None]) -> list[HalfVector]:
    found: list[HalfVector] = []
    for start in range(0, len(texts), BATCH):
        found += [HalfVector(vector) for vector in provider().embed(texts[start : start + BATCH])]
        tell(len(found))
    return found


def _space() -> EmbeddingSpace:
    p = provider()
    preset = asdict(preset_for(p.model))
    thresholds = {name: preset[name] for name in SIMILARITIES}
    gate = preset["support_gate"]
    return EmbeddingSpace(
        model=p.model, revision=p.revision, dimension=p.dimension, is_active=False, gate=gate, **thresholds
    )


def _make_tables() -> None:
    """Empty tables like the store's, with their indexes, found before them by every statement of the transaction."""
    ((path,),) = fetch("SELECT current_setting('search_path')")
    ((home,),) = fetch("SELECT quote_ident(current_schema())")
    for table in TABLES:
        execute(f"CREATE TEMPORARY TABLE {table} (LIKE {home}.{table} INCLUDING ALL) ON COMMIT DROP")
    # Named first, the schema of temporary tables is also the current one, whose statistics of words are read.
    execute(f"SET LOCAL search_path = pg_temp, {path}")


def _fill(space: EmbeddingSpace, lessons: Sequence[tuple[UUID, str]], vectors: Sequence[HalfVector]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO lesson (id, text, text_sha256, origin, state, polarity, anchors, source_ref, identifiers) "
            "VALUES (%s, %s, %s, 'imported', 'active', '{}', '{}', '', array_to_tsvector(%s::text[]))",
            [(pk, text, digest(text), identifiers(text)) for pk, text in lessons],
        )
        cursor.executemany(
            "INSERT INTO lesson_embedding (id, lesson_id, space_id, embedding, state, reviewed) "
            "VALUES (%s, %s, %s, %s, 'active', false)",
            [(pk, pk, space.pk, vector.to_text()) for (pk, _), vector in zip(lessons, vectors, strict=True)],
        )
    for table in TABLES[:2]:
        execute(f"ANALYZE {table}")
