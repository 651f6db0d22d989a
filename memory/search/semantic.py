"""Nearest lessons in the active embedding space."""

from collections.abc import Collection, Mapping
from typing import Final

from memory import conf
from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch, vector_literal
from memory.search.types import Scope, SemanticHit

# Lessons that the index keeps in view while it searches, by state. 200 finds 0.967 of the nearest 20 at a million
# lessons. Of the quarantined only those matter that lie among the nearest 40 of all: 40 finds 0.997 and more of them.
EF_SEARCH: Final[Mapping[str, int]] = {"active": 200, "quarantined": 40}
MAX_SCAN_TUPLES = 200_000  # an account's own lessons may be a thin slice of the index


def prepare_session() -> None:
    """Settings of this transaction for statements on the index other than `semantic`, which brings its own."""
    fetch(f"SELECT {_settings(EF_SEARCH['active'])}")


def _settings(ef_search: int) -> str:
    """SQL that sets how the index is searched, until the transaction ends: on until enough rows pass the filter."""
    wanted = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
        "hnsw.ef_search": str(ef_search),
    }
    return " || ".join(f"set_config('{name}', '{value}', true)" for name, value in wanted.items())


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
    """The nearest lessons in service by cosine, at most `limit`, and the quarantined among as many nearest of all.

    Nearest first. A quarantined lesson that lies farther off would take nobody's place.

    The space stands in the statement as a literal: a parameter would let a generic plan miss the partial index. The
    iterative scan may return rows slightly out of order, so distances are sorted again over the materialised hits.
    """
    where, params = _filter(scope)
    # The cast matches the expression of the HNSW index; without it the search is exact.
    column = "embedding" if _is_small(space, scope) else f"embedding::halfvec({space.dimension})"
    parts: list[str] = []
    values: list[object] = [vector_literal(vector.tolist())]
    for state in states:
        # The condition on the settings looks at no row: PostgreSQL evaluates it once, before it scans the index.
        parts.append(
            f"""
            (SELECT lesson_id, '{state}' AS state, {column} <=> (SELECT vector FROM query) AS distance
            FROM lesson_embedding
            WHERE (SELECT {_settings(EF_SEARCH[state])}) IS NOT NULL
                AND space_id = '{space.pk}' AND state = '{state}' AND {where}
            ORDER BY distance LIMIT %s)
            """
        )
        values += [*params, limit]
    statement = f"""
        WITH query AS (SELECT %s::halfvec AS vector), hits AS MATERIALIZED ({" UNION ALL ".join(parts)}), placed AS (
            SELECT *, row_number() OVER (ORDER BY distance, lesson_id) AS place FROM hits
        )
        SELECT lesson_id, state, 1 - distance FROM placed WHERE state = 'active' OR place <= %s ORDER BY place
    """
    rows = fetch(statement, [*values, limit])
    return [SemanticHit(lesson_id=i, state=state, cosine=cosine) for i, state, cosine in rows]
