"""Nearest lessons in the active embedding space."""

from collections.abc import Iterable

from memory import conf
from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.search.types import Scope, SemanticHit

EF_SEARCH = 200  # recall@20 of 0.967 against exact search at a million lessons
MAX_SCAN_TUPLES = 200_000  # an account's own lessons may be a thin slice of the index
STATES = ("active", "quarantined")


def vector_literal(vector: Iterable[float]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{x:.6g}" for x in vector) + "]"


def prepare_session() -> None:
    """Planner settings of this transaction: keep scanning until enough rows pass the filter."""
    fetch(
        """
        SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %s, true),
            set_config('hnsw.max_scan_tuples', %s, true), set_config('jit', 'off', true)
        """,
        [str(EF_SEARCH), str(MAX_SCAN_TUPLES)],
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


def semantic(space: EmbeddingSpace, vector: Vectors, scope: Scope, limit: int) -> list[SemanticHit]:
    """The nearest lessons of each state by cosine, at most `limit` of each, nearest first.

    The space stands in the statement as a literal: a parameter would let a generic plan miss the partial index. The
    iterative scan may return rows slightly out of order, so distances are sorted again over the materialised hits.
    """
    where, params = _filter(scope)
    # The cast matches the expression of the HNSW index; without it the search is exact.
    column = "embedding" if _is_small(space, scope) else f"embedding::halfvec({space.dimension})"
    query = vector_literal(vector.tolist())
    parts, values = [], []
    for state in STATES:
        parts.append(
            f"""
            (SELECT lesson_id, '{state}' AS state, {column} <=> %s::halfvec AS distance FROM lesson_embedding
            WHERE space_id = '{space.pk}' AND state = '{state}' AND {where}
            ORDER BY {column} <=> %s::halfvec LIMIT %s)
            """
        )
        values += [query, *params, query, limit]
    statement = f"""
        WITH hits AS MATERIALIZED ({" UNION ALL ".join(parts)})
        SELECT lesson_id, state, 1 - distance FROM hits ORDER BY distance, lesson_id
    """
    rows = fetch(statement, values)
    return [SemanticHit(lesson_id=i, state=state, cosine=cosine) for i, state, cosine in rows]
