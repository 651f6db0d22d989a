"""A plan of near-duplicates over a whole store, beside the plainest ways to find the same pairs."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import numpy as np
from django.db import transaction

from evaluation.performance import peak
from evaluation.performance.bench import Bench
from evaluation.performance.finding import Bar, Finding, compared, plain
from evaluation.performance.store import scratch
from evaluation.performance.timing import Floats, Side, in_turns
from memory.models import Lesson, PrunePlan
from memory.models.sql import execute, fetch
from memory.rules.claim import same_claim, signature
from memory.services import pruning
from memory.services.pairs import EF_SEARCH, NEIGHBOURS, Where

#: Of each side, by the lessons of the store; in a larger one a plan takes longer than a benchmark should.
ROUNDS: Final = {1_000: 20, 10_000: 9, 100_000: 2}
LONG: Final = 100_000  # lessons from which comparing all takes minutes, and is done once
BLOCK: Final = 500  # rows of the matrix of cosines at once
HEADER: Final = 4  # bytes of halfvec_send before the components
RECALL: Final = Bar(limit=0.99, at_least=True)
MEMORY: Final = Bar(limit=500)  # MB
FLOORS: Final = {"numpy": "blocked numpy", "index": "the index alone, with the same effort"}

Pairs = set[tuple[UUID, UUID]]  # the smaller id first


@dataclass(frozen=True, kw_only=True)
class Searches:
    """The three ways to find pairs, and what each has found."""

    where: Where
    found: dict[str, Pairs] = field(default_factory=dict)

    def timed(self, rounds: int, once: Collection[str]) -> dict[str, Floats]:
        """Seconds of each in turns, and of some once."""
        sides = self._sides()
        often = in_turns({name: side for name, side in sides.items() if name not in once}, rounds, warm_up=0)
        return often | {name: in_turns({name: sides[name]}, rounds=1, warm_up=0)[name] for name in once}

    def _sides(self) -> dict[str, Side]:
        return {
            "numpy": Side(act=lambda _: self.found.update(numpy=by_numpy(self.where))),
            "index": Side(act=lambda _: self.found.update(index=by_index(self.where))),
            "ours": Side(
                act=lambda _: self.found.update(ours=planned(self.where)),
                before=lambda _: PrunePlan.objects.all().delete(),
            ),
        }


def by_numpy(where: Where) -> Pairs:
    """All cosines, the upper half of the matrix in blocks."""
    rows = fetch(
        f"SELECT e.lesson_id, halfvec_send(e.embedding) FROM lesson_embedding e WHERE {where.condition()} "
        "ORDER BY e.lesson_id"
    )
    raw = b"".join(bytes(vector)[HEADER:] for _, vector in rows)
    vectors = np.frombuffer(raw, dtype=">f2").reshape(len(rows), -1).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = set()
    for start in range(0, len(rows), BLOCK):
        near = vectors[start : start + BLOCK] @ vectors[start:].T >= where.space.prune_similarity
        pairs |= {(rows[start + i][0], rows[start + j][0]) for i, j in zip(*np.nonzero(near), strict=True) if i < j}
    return pairs


def by_index(where: Where) -> Pairs:
    """The nearest of each lesson, in one statement on one core."""
    column = f"embedding::halfvec({where.space.dimension})"
    with transaction.atomic():
        for name, value in (
            ("hnsw.ef_search", EF_SEARCH),
            ("max_parallel_workers_per_gather", 0),
            ("enable_seqscan", "off"),
            ("enable_sort", "off"),
        ):
            execute(f"SET LOCAL {name} = {value}")
        rows = fetch(
            f"""
            SELECT DISTINCT least(p.lesson_id, n.lesson_id), greatest(p.lesson_id, n.lesson_id)
            FROM lesson_embedding p CROSS JOIN LATERAL (
                SELECT e.lesson_id, e.{column} <=> p.{column} AS distance FROM lesson_embedding e
                WHERE {where.condition("e")} ORDER BY e.{column} <=> p.{column} LIMIT {NEIGHBOURS + 1}
            ) n
            WHERE {where.condition("p")} AND n.distance <= {1 - where.space.prune_similarity}
                AND n.lesson_id <> p.lesson_id
            """
        )
    return {(first, second) for first, second in rows}


def planned(where: Where) -> Pairs:
    """What the product does: pairs, their claims, who is kept, and all of it written down."""
    *_, last = pruning.making(where, complete=True)
    assert last.plan is not None, "the last step has the plan"
    return {(UUID(first), UUID(second)) for first, second, _ in last.plan.states["search"]["pairs"]}


def measure(bench: Bench) -> list[Finding]:
    """Time, recall and memory of one plan."""
    with scratch(bench.shape) as database:
        searches = Searches(where=pruning.scope(None))
        taken = searches.timed(ROUNDS[bench.lessons], once=("numpy",) if bench.lessons >= LONG else ())
        truth = of_one_claim(searches.found["numpy"])
        PrunePlan.objects.all().delete()
        idle, busy = (peak.of(what, database) for what in ("idle", "plan"))
    best = min(FLOORS, key=lambda name: float(np.median(taken[name])))
    recall = {name: len(pairs & truth) / len(truth) for name, pairs in searches.found.items()}
    size = bench.lessons
    return [
        *(_time(bench, name, taken, 1.5 if name == best and bench.judged else None) for name in FLOORS),
        plain(size, "duplicates.recall", "share of exact pairs in the plan", recall["ours"], "share", RECALL),
        plain(size, "duplicates.recall_of_index", "share of exact pairs from the index", recall["index"], "share"),
        plain(
            size, "duplicates.memory", "peak memory of a planning process", busy, "MB", MEMORY if size >= LONG else None
        ),
        plain(size, "duplicates.memory_idle", "peak memory of an idle process", idle, "MB"),
    ]


def of_one_claim(pairs: Pairs) -> Pairs:
    """Those whose texts make the same claim: no others may become one lesson, however near they are."""
    ids = {lesson for pair in pairs for lesson in pair}
    texts = Lesson.objects.filter(pk__in=ids).values_list("pk", "text")
    claims = {pk: signature(text) for pk, text in texts}
    return {pair for pair in pairs if same_claim(claims[pair[0]], claims[pair[1]]).same}


def _time(bench: Bench, name: str, taken: dict[str, Floats], at_most: float | None) -> Finding:
    return compared(
        bench.lessons,
        f"duplicates.beside_{name}",
        "a plan of near-duplicates over the whole store",
        ours=taken["ours"],
        floor=taken[name],
        against=FLOORS[name],
        at_most=at_most,
    )
