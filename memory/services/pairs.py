"""Pairs of active lessons with near vectors: exactly in a small scope, through the vector index in a large one.

A plan for pruning and the search for contradictions both start from them. Nothing here compares claims.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from memory import conf
from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.rules.pruning import Pair, pair_of

NEIGHBOURS: Final = 20  # of each lesson at most: what has more says the same many times over, and the next run goes on
EF_SEARCH: Final = 200  # of 100,000 lessons' near duplicates it finds 99.7%; 60 finds 96.6%
COMPARED: Final = 20_000  # lessons that a page or a job compares with all; more take the memory of a command
LOADED: Final = 5_000  # vectors read in one statement
PROBES: Final = 500  # lessons looked around in one statement
BLOCK_BYTES: Final = 32 << 20  # of cosines held at once by the exact search
_HEADER: Final = 4  # halfvec_send: two 16-bit integers before the components
NOTHING: Final = UUID(int=0)  # sorts before every id

Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one step of a search came to."""

    pairs: list[Pair]  # each pair of lessons once in the whole search
    done: int  # lessons looked around so far
    total: int  # lessons to look around


@dataclass(frozen=True, kw_only=True)
class Where:
    """The lessons among which pairs are sought: active ones of one scope, in one space."""

    space: EmbeddingSpace
    account_id: UUID | None

    def condition(self, alias: str = "e") -> str:
        """On `lesson_embedding`. SQL of literals only: a parameter would let a generic plan miss the partial index."""
        account = "IS NULL" if self.account_id is None else f"= '{self.account_id}'"
        return f"{alias}.space_id = '{self.space.pk}' AND {alias}.state = 'active' AND {alias}.account_id {account}"


def size(where: Where, limit: int) -> int:
    """How many lessons there are, counted no further than `limit`."""
    ((n,),) = fetch(
        f"SELECT count(*) FROM (SELECT 1 FROM lesson_embedding e WHERE {where.condition()} LIMIT %s) few", [limit]
    )
    return int(n)


def is_small(where: Where, *, whole: bool = False) -> bool:
    """Whether the scope is searched exactly; one that is looked through as a `whole` may be larger."""
    limit = conf.current().prune_exact_limit
    limit = limit if whole else min(limit, COMPARED)
    return size(where, limit + 1) <= limit


def near_pairs(where: Where, at_least: float, probes: Sequence[UUID] | None = None) -> Iterator[Found]:
    """Pairs with a cosine of `at_least`, step by step; with `probes`, those that have one of these lessons.

    Each lesson is paired with its NEIGHBOURS nearest at most.
    """
    if is_small(where, whole=probes is None):
        yield from _exact(where, at_least, probes)
    else:
        yield from _by_index(where, at_least, probes)


def _exact(where: Where, at_least: float, probes: Sequence[UUID] | None) -> Iterator[Found]:
    """Blocks of the matrix of all cosines; without `probes` its upper half alone."""
    ids, vectors = _load(where)
    asked = set(probes) if probes is not None and not set(ids) <= set(probes) else None
    rows = np.array([i for i, lesson in enumerate(ids) if asked is None or lesson in asked], dtype=np.intp)
    height = max(1, BLOCK_BYTES // (4 * max(1, len(ids))))
    done = 0
    for start in range(0, len(rows), height):
        block = rows[start : start + height]
        first = int(block[0]) if asked is None else 0
        pairs = [
            pair_of(ids[i], ids[j], cosine)
            for i, j, cosine in _above(vectors, block, first, at_least)
            if i < j or (asked is not None and ids[j] not in asked)
        ]
        done += len(block)
        yield Found(pairs=pairs, done=done, total=len(rows))


def _above(vectors: Vectors, block: Indices, first: int, at_least: float) -> Iterator[tuple[int, int, float]]:
    """(row, column, cosine) of the block's rows with the other columns from `first`; the nearest where many are."""
    cosines = vectors[block] @ vectors[first:].T
    cosines[np.arange(len(block)), block - first] = -2  # itself
    rows, columns = np.divmod(np.flatnonzero(cosines >= at_least), cosines.shape[1])
    for row in np.unique(rows):
        near = columns[rows == row]
        if len(near) > NEIGHBOURS:
            near = near[np.argsort(-cosines[row, near], kind="stable")[:NEIGHBOURS]]
        for column in near:
            yield int(block[row]), first + int(column), min(1.0, float(cosines[row, column]))


def _load(where: Where) -> tuple[list[UUID], Vectors]:
    """Ids in ascending order, with their vectors (n, dimension); read in parts, since a large scope fits only once."""
    vectors = np.empty((_count(where), where.space.dimension), dtype=np.float32)
    ids: list[UUID] = []
    while len(ids) < len(vectors):
        rows = fetch(
            f"SELECT e.lesson_id, halfvec_send(e.embedding) FROM lesson_embedding e WHERE {where.condition()} "
            "AND e.lesson_id > %s ORDER BY e.lesson_id LIMIT %s",
            [ids[-1] if ids else NOTHING, min(LOADED, len(vectors) - len(ids))],
        )
        if not rows:  # some were deleted since they were counted
            break
        raw = b"".join(bytes(vector)[_HEADER:] for _, vector in rows)
        part = vectors[len(ids) : len(ids) + len(rows)]
        part[:] = np.frombuffer(raw, dtype=">f2").reshape(len(rows), -1)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        ids += [lesson for lesson, _ in rows]
    return ids, vectors[: len(ids)]


def _by_index(where: Where, at_least: float, probes: Sequence[UUID] | None) -> Iterator[Found]:
    """The nearest lessons of each, from the HNSW index; a pair that both sides find is given once."""
    seen: set[tuple[UUID, UUID]] = set()
    done, after = 0, NOTHING
    total = len(probes) if probes is not None else _count(where)
    while batch := list(probes[done : done + PROBES]) if probes is not None else lessons_after(where, after, PROBES):
        pairs = []
        for a, b, cosine in _neighbours(where, at_least, batch):
            pair = pair_of(a, b, min(1.0, cosine))
            if (key := (pair.first, pair.second)) not in seen:
                seen.add(key)
                pairs.append(pair)
        done, after = done + len(batch), batch[-1]
        yield Found(pairs=pairs, done=done, total=max(total, done))


def _neighbours(where: Where, at_least: float, probes: Sequence[UUID]) -> list[tuple[Any, ...]]:
    column = f"embedding::halfvec({where.space.dimension})"
    with transaction.atomic():
        # Iterative: entries of deleted rows, which stay until a VACUUM, must not take the places of living ones.
        # Before its first ANALYZE a filled table looks empty, and a sequential scan for each lesson looks cheap.
        fetch(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            "set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), "
            "set_config('enable_sort', 'off', true)",
            [str(EF_SEARCH)],
        )
        return fetch(
            f"""
            SELECT p.lesson_id, n.lesson_id, 1 - n.distance FROM lesson_embedding p CROSS JOIN LATERAL (
                SELECT e.lesson_id, e.{column} <=> p.{column} AS distance FROM lesson_embedding e
                WHERE {where.condition("e")} ORDER BY e.{column} <=> p.{column} LIMIT {NEIGHBOURS + 1}
            ) n
            WHERE p.lesson_id = ANY(%s) AND {where.condition("p")}
                AND n.distance <= %s AND n.lesson_id <> p.lesson_id
            """,
            [list(probes), 1 - at_least],
        )


def _count(where: Where) -> int:
    ((n,),) = fetch(f"SELECT count(*) FROM lesson_embedding e WHERE {where.condition()}")
    return int(n)


def lessons_after(where: Where, after: UUID, limit: int) -> list[UUID]:
    """The next lessons in the order of their ids, which is the order in which they were made."""
    return [lesson for lesson, _ in _after(where.condition(), after, limit)]


def _after(condition: str, after: UUID, limit: int) -> list[tuple[UUID, UUID | None]]:
    rows = fetch(
        f"SELECT e.lesson_id, e.account_id FROM lesson_embedding e WHERE {condition} AND e.lesson_id > %s "
        "ORDER BY e.lesson_id LIMIT %s",
        [after, limit],
    )
    return [(lesson, account) for lesson, account in rows]


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """How far a job that goes round the lessons has come."""

    newest: UUID = NOTHING  # every lesson up to this one was looked around once
    next: UUID = NOTHING  # the round of the old ones goes on after this one

    def to_json(self) -> list[str]:
        return [str(self.newest), str(self.next)]

    @classmethod
    def from_json(cls, data: Sequence[str] | None) -> "Cursor":
        return cls(newest=UUID(data[0]), next=UUID(data[1])) if data else cls()


def scopes(space: EmbeddingSpace) -> list[Where]:
    """Every scope that has active lessons."""
    rows = fetch(f"SELECT e.account_id FROM lesson_embedding e WHERE {everywhere(space)} GROUP BY e.account_id")
    return [Where(space=space, account_id=account) for (account,) in rows]


def everywhere(space: EmbeddingSpace) -> str:
    """The condition for active lessons of every scope."""
    return f"e.space_id = '{space.pk}' AND e.state = 'active'"


def next_probes(condition: str, cursor: Cursor, limit: int) -> tuple[dict[UUID | None, list[UUID]], Cursor]:
    """The lessons of a run, by account: first what is new, then the next of the round; and the cursor after it.

    Where at most `limit` lessons meet the condition that is all of them.
    """
    fresh = _after(condition, cursor.newest, limit)
    again = _after(condition, cursor.next, limit - len(fresh)) if len(fresh) < limit else []
    by_account: dict[UUID | None, list[UUID]] = {}
    for lesson, account in sorted({*fresh, *again}, key=lambda found: found[0]):
        by_account.setdefault(account, []).append(lesson)
    at_the_end = len(again) < limit - len(fresh)
    after = Cursor(
        newest=fresh[-1][0] if fresh else cursor.newest,
        next=NOTHING if at_the_end else (again[-1][0] if again else cursor.next),
    )
    return by_account, after
