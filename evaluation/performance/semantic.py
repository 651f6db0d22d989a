"""Search by meaning: how fast beside the plainest statement, and how much of the exact answer it finds."""

import operator
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from uuid import UUID

import numpy as np
from django.db import transaction

from evaluation.performance.bench import EVERYTHING, REVIEWED, TOP, Bench, raw_cursor
from evaluation.performance.finding import Bar, Finding, compared
from evaluation.performance.load import quarantine_half
from evaluation.performance.store import scratch
from evaluation.performance.timing import ROUNDS, Side, in_turns, mean, ratio
from memory.embedding import Vectors
from memory.models.sql import execute, fetch, vector_literal
from memory.search import Scope
from memory.search.details import read_halfvec
from memory.search.semantic import EF_SEARCH, semantic

RECALL = Bar(limit=0.95, at_least=True)
SCANS = 5  # rounds of the full scan, which takes seconds
RAW = "top 20 by psycopg"
READ = 20_000  # vectors read at once


def raw_top(bench: Bench) -> Side:
    """The plainest statement that uses the same index with the same effort."""
    column = f"embedding::halfvec({bench.space.dimension})"
    statement = (
        f"SELECT lesson_id, {column} <=> %s::halfvec AS distance FROM lesson_embedding "
        f"WHERE space_id = '{bench.space.pk}' AND state = 'active' ORDER BY distance LIMIT {TOP}"
    ).encode()
    literals = [vector_literal(vector.tolist()) for vector in bench.tasks.vectors]
    cursor = raw_cursor()
    return Side(
        act=lambda i: cursor.execute(statement, [literals[i]]).fetchall(),
        before=lambda _: execute(f"SET LOCAL hnsw.ef_search = {EF_SEARCH['active']}"),
    )


def ours(bench: Bench, limit: int = TOP, states: tuple[str, ...] = ("active",)) -> Side:
    return Side(act=lambda i: semantic(bench.space, bench.tasks.vectors[i], EVERYTHING, limit, states))


@dataclass(frozen=True, kw_only=True)
class Exact:
    """All vectors of one kind, to compare with one by one."""

    ids: list[UUID]
    vectors: Vectors  # (n, dimension), unit rows as stored

    def top(self, vector: Vectors) -> set[UUID]:
        """The TOP nearest lessons."""
        cosines = self.vectors @ vector
        nearest = np.argpartition(-cosines, TOP)[:TOP] if len(cosines) > TOP else range(len(cosines))
        return {self.ids[i] for i in nearest}


def exact(bench: Bench, where: str, states: Sequence[str] = ("active",)) -> Exact:
    """Read in parts: a million vectors as floats are 1.5 GB, and as what the driver gives twice that again."""
    condition = f"space_id = '{bench.space.pk}' AND state = ANY(%s) AND {where}"
    ((size,),) = fetch(f"SELECT count(*) FROM lesson_embedding WHERE {condition}", [list(states)])
    vectors = np.empty((size, bench.space.dimension), dtype=np.float32)
    ids: list[UUID] = [UUID(int=0)]
    while rows := fetch(
        f"SELECT lesson_id, halfvec_send(embedding) FROM lesson_embedding WHERE {condition} AND lesson_id > %s "
        f"ORDER BY lesson_id LIMIT {READ}",
        [list(states), ids[-1]],
    ):
        for n, (lesson, raw) in enumerate(rows, start=len(ids) - 1):
            vectors[n] = read_halfvec(raw)
            ids.append(lesson)
    return Exact(ids=ids[1:], vectors=vectors)


def recall(bench: Bench, key: str, what: str, scope: Scope = EVERYTHING, where: str = "account_id IS NULL") -> Finding:
    """The share of the exact top 20 that the index finds, over the tasks."""
    truth = exact(bench, where)
    found = []
    with transaction.atomic():
        for vector in bench.tasks.vectors[:ROUNDS]:
            hits = semantic(bench.space, vector, scope, TOP, ("active",))
            found.append(len(truth.top(vector) & {hit.lesson_id for hit in hits}) / TOP)
    return Finding(
        key=f"meaning.{key}",
        lessons=bench.lessons,
        what=what,
        result=mean(np.array(found)),
        unit="share",
        bar=RECALL,
    )


def speed(bench: Bench) -> list[Finding]:
    sides = {
        "raw": raw_top(bench),
        "ours": ours(bench),
        "both": ours(bench, states=tuple(EF_SEARCH)),
    }
    with transaction.atomic():
        taken = in_turns(sides)
    return [
        compared(
            bench.lessons,
            "meaning.speed",
            "semantic top 20 with state and scope filter",
            ours=taken["ours"],
            floor=taken["raw"],
            against=RAW,
            at_most=1.3 if bench.judged else None,
        ),
        compared(
            bench.lessons,
            "meaning.with_quarantined",
            "the same, and the quarantined lessons near the task (one in twenty is)",
            ours=taken["both"],
            floor=taken["raw"],
            against=RAW,
        ),
    ]


def recalls(bench: Bench) -> list[Finding]:
    return [
        recall(bench, "recall", "recall@20, one lesson in twenty quarantined"),
        recall(
            bench, "recall_gated", "recall@20, half of the lessons not approved (gated account)", REVIEWED, "reviewed"
        ),
    ]


def full_scan(bench: Bench) -> list[Finding]:
    """The reference system's search: every vector compared in pure Python."""
    truth = exact(bench, "account_id IS NULL")
    rows = [array("f", vector.tobytes()) for vector in truth.vectors]
    queries = [vector.tolist() for vector in bench.tasks.vectors[:SCANS]]

    def scan(i: int) -> object:
        query = queries[i % SCANS]
        distances = ((-sum(map(operator.mul, query, row)), n) for n, row in enumerate(rows))
        return nsmallest(TOP, distances)

    with transaction.atomic():
        index = in_turns({"ours": ours(bench)})["ours"]
    scanned = in_turns({"scan": Side(act=scan)}, rounds=SCANS, warm_up=1)["scan"]
    # At least 100 times at 100,000 lessons, where a scan takes long enough to matter.
    bar = Bar(limit=100, at_least=True) if bench.lessons >= 100_000 else None
    return [
        Finding(
            key="scan.times",
            lessons=bench.lessons,
            what="times faster than a scan in pure Python, as the reference system has it",
            result=ratio(scanned, index),
            unit="x",
            floor="scan",
            floor_ms=float(np.median(scanned)) * 1000,
            ours_ms=float(np.median(index)) * 1000,
            bar=bar,
        )
    ]


def after_quarantine(bench: Bench) -> list[Finding]:
    """Recall after every other lesson went into quarantine one by one: their rows are still in the index, dead."""
    with scratch(bench.shape):
        quarantine_half()
        return [recall(bench, "recall_after_quarantine", "recall@20 after half of the lessons went into quarantine")]
