"""Nearest lessons in the active embedding space."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from memory import conf
from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.search.types import Scope, SemanticHit

# Lessons that the index keeps in view while it searches, by state. 200 finds 0.967 of the nearest 20 at a million
# lessons. Of the quarantined only those matter that lie among the nearest of all, and few of them do.
EF_SEARCH: Final[Mapping[str, int]] = {"active": 200, "quarantined": 64}
MAX_SCAN_TUPLES = 200_000  # an account's own lessons may be a thin slice of the index


def vector_literal(vector: Iterable[float]) -> str:
    """A vector as pgvector reads it."""
    components = tuple(vector)
    return f"[{','.join(['%.6g'] * len(components))}]" % components  # one formatting call for all: half the time


def prepare_session() -> None:
    """Planner settings of this transaction: keep scanning until enough rows pass the filter."""
    fetch(
        """
        SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.max_scan_tuples', %s, true), set_config('jit', 'off', true)
        """,
        [str(MAX_SCAN_TUPLES)],
    )


def _filter(scope: Scope) -> tuple[str, list[object]]:
    account = "account_id IS NULL" if scope.account_id is None else "account_id = %s"
    params: list[object] = [] if scope.account_id is None else [scope.account_id]
    return account + (" AND reviewed" if scope.reviewed_only else ""), params


def _is_small(space: EmbeddingSpace, scope: Scope) -> bool:
    """Whether the account has few enough vectors for an exact search over the btree index."""
    if scope.account_id is None:
        return False
    limit = conf.current().exact_search_limit
    ((few,),) = fetch(
        """
        SELECT count(*) FROM (SELECT 1 FROM lesson_embedding
        WHERE space_id = %s AND account_id = %s AND state = 'active' LIMIT %s) AS few
        """,
        [space.pk, scope.account_id, limit + 1],
    )
    return bool(few <= limit)


def semantic(
    space: EmbeddingSpace, vector: Vectors, scope: Scope, limit: int, states: Collection[str] = tuple(EF_SEARCH)
) -> list[SemanticHit]:
    """The nearest lessons of each state by cosine, at most `limit` of each, nearest first.

    The space stands in the statement as a literal: a parameter would let a generic plan miss the partial index. The
    iterative scan may return rows slightly out of order, so distances are sorted again over the materialised hits.
    """
    where, params = _filter(scope)
    # The cast matches the expression of the HNSW index; without it the search is exact.
    column = "embedding" if _is_small(space, scope) else f"embedding::halfvec({space.dimension})"
    parts: list[str] = []
    values: list[object] = [vector_literal(vector.tolist())]
    for state in states:
        # The condition on set_config looks at no row: PostgreSQL evaluates it once, before it scans the index.
        parts.append(
            f"""
            (SELECT lesson_id, '{state}' AS state, {column} <=> (SELECT vector FROM query) AS distance
            FROM lesson_embedding
            WHERE (SELECT set_config('hnsw.ef_search', '{EF_SEARCH[state]}', true)) IS NOT NULL
                AND space_id = '{space.pk}' AND state = '{state}' AND {where}
            ORDER BY distance LIMIT %s)
            """
        )
        values += [*params, limit]
    statement = f"""
        WITH query AS (SELECT %s::halfvec AS vector), hits AS MATERIALIZED ({" UNION ALL ".join(parts)})
        SELECT lesson_id, state, 1 - distance FROM hits ORDER BY distance, lesson_id
    """
    rows = fetch(statement, values)
    return [SemanticHit(lesson_id=i, state=state, cosine=cosine) for i, state, cosine in rows]
