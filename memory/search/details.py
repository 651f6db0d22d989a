"""Everything else that ranking needs to know of the candidates, in one statement."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.search.terms import Term, tsquery
from memory.search.types import Candidate, EmbeddedQuery, Evidence

_HEADER = 4  # halfvec_send: two 16-bit integers before the components


def read_halfvec(raw: bytes | memoryview) -> Vectors:
    """pgvector's binary halfvec (big-endian IEEE 754 half precision) as a float32 unit vector."""
    vector = np.frombuffer(bytes(raw)[_HEADER:], dtype=">f2").astype(np.float32)
    return vector / np.linalg.norm(vector)


_STATEMENT = """
    SELECT l.id, l.text, l.text_sha256, l.state, extract(epoch FROM coalesce(s.last_win_at, l.created_at))::float8,
        1 - (e.embedding <=> %(vector)s::halfvec),
        ARRAY(SELECT q.i FROM unnest(%(queries)s::tsquery[]) WITH ORDINALITY AS q(term, i) WHERE l.search @@ q.term),
        coalesce(t.n, 0), coalesce(t.reward, 0),
        CASE WHEN l.state = 'quarantined' THEN s.last_loss_at END, s.quarantined_at, coalesce(s.on_trial, false),
        s.s, s.released_s, s.d
    FROM lesson l
        LEFT JOIN lesson_embedding e ON e.lesson_id = l.id AND e.space_id = %(space)s
        LEFT JOIN LATERAL (
            -- The stronger of the two judges comes first in the alphabet too, and so in the index.
            SELECT n, reward FROM lesson_source_sum
            WHERE lesson_id = l.id AND source IN ('caller', 'machine') AND n > 0
            ORDER BY source LIMIT 1
        ) AS t ON true
        LEFT JOIN lesson_standing s ON s.lesson_id = l.id
    WHERE l.id = ANY(%(ids)s) AND l.state IN ('active', 'quarantined')
    ORDER BY l.id
"""


def details(
    query: EmbeddedQuery, terms: list[Term], ids: Collection[UUID], lexical_scores: Mapping[UUID, float]
) -> list[Candidate]:
    """The candidates in the order of their ids. The cosine is exact, also for a lesson that only the words found."""
    words = [term for term in terms if term.column == "search"]
    values = {
        "vector": query.literal,
        "space": query.space.pk if query.space else None,
        "queries": [tsquery(term.lexeme) for term in words],
        "ids": list(ids),
    }
    total = sum(term.idf for term in words) or 1.0
    found = []
    for row in fetch(_STATEMENT, values):
        shared = [words[int(i) - 1] for i in row[6]]
        coverage = sum(term.idf for term in shared) / total
        found.append(_candidate(row, len(shared), coverage, lexical_scores.get(row[0])))
    return found


def _candidate(row: tuple[Any, ...], shared: int, coverage: float, lexical_score: float | None) -> Candidate:
    return Candidate(
        lesson_id=row[0],
        text=row[1],
        text_sha256=row[2],
        state=row[3],
        fresh_at=row[4],
        cosine=row[5],
        lexical_score=lexical_score,
        shared_anchors=shared,
        coverage=coverage,
        evidence=Evidence(n=row[7], reward=Decimal(row[8])),
        last_loss_at=row[9],
        quarantined_at=row[10],
        on_trial=row[11],
        s=row[12],
        released_s=row[13],
        d=row[14],
    )


def vectors_of(space: EmbeddingSpace, ids: Collection[UUID]) -> dict[UUID, Vectors]:
    """Unit vectors by lesson, of those that have one in the space. Not among the details: few candidates need them."""
    rows = fetch(
        "SELECT lesson_id, halfvec_send(embedding) FROM lesson_embedding WHERE space_id = %s AND lesson_id = ANY(%s)",
        [space.pk, list(ids)],
    )
    return {lesson_id: read_halfvec(raw) for lesson_id, raw in rows}
