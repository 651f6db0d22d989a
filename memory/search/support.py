"""Is the task of the store's kind at all? Its similarity with a fixed sample of the lessons tells."""

import threading
import time
from collections import OrderedDict
from uuid import UUID

import numpy as np

from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.rules.relevance import SupportGate, support
from memory.search.details import read_halfvec
from memory.search.types import Scope

SAMPLE = 500  # lessons; of 200, two samples of the real lessons tell supports of one task that differ by a twentieth
READ = 3000  # rows that the sample is taken from: enough even where most are quarantined or of another space
ENOUGH = 150  # fewer tell too little, and the fixed gate decides alone
SEED = 42  # the same sample for every task and in every process
_KEEP_SECONDS = 300.0
_KEEP_SCOPES = 64


class _Samples:
    """The sample of each space and scope, read at most every five minutes by each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[UUID, Scope], tuple[float, Vectors]] = OrderedDict()

    def get(self, space: EmbeddingSpace, scope: Scope) -> Vectors:
        key = (space.pk, scope)
        with self._lock:
            read_at, sample = self._kept.get(key, (-np.inf, np.empty((0, 0), dtype=np.float32)))
        if time.monotonic() - read_at > _KEEP_SECONDS:
            sample = _read(space, scope)
            with self._lock:
                self._kept[key] = (time.monotonic(), sample)
                self._kept.move_to_end(key)
                while len(self._kept) > _KEEP_SCOPES:
                    self._kept.popitem(last=False)
        return sample

    def forget(self) -> None:
        """After an import, or an erasure."""
        with self._lock:
            self._kept.clear()


samples = _Samples()


def _read(space: EmbeddingSpace, scope: Scope) -> Vectors:
    """The vectors of SAMPLE active lessons, (n, dimension), with the same work in a store of any size."""
    within = f"space_id = '{space.pk}' AND state = 'active' AND account_id"
    if scope.account_id is None:
        ((rows,),) = fetch("SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = 'lesson_embedding'::regclass")
        share = min(100.0, 100.0 * READ / rows)  # percent
        source = f"lesson_embedding TABLESAMPLE SYSTEM ({share}) REPEATABLE ({SEED}) WHERE {within} IS NULL"
    else:  # an account's lessons may be few among many: its index finds them
        source = f"lesson_embedding WHERE {within} = '{scope.account_id}' LIMIT {READ}"
    # A hash decides who is in the sample, since neighbours in the table were often written together.
    found = fetch(
        f"""
        SELECT halfvec_send(embedding) FROM (SELECT lesson_id, embedding FROM {source}) AS read
        ORDER BY uuid_hash_extended(lesson_id, {SEED}) LIMIT {SAMPLE}
        """
    )
    if not found:
        return np.empty((0, space.dimension), dtype=np.float32)
    return np.stack([read_halfvec(raw) for (raw,) in found])


def task_support(space: EmbeddingSpace, scope: Scope, vector: Vectors) -> tuple[float, SupportGate] | None:
    """The task's support and the space's gate for it; None where the space has no such gate or the store is small."""
    if not space.gate:
        return None
    known = support_of(space, scope, vector)
    return None if known is None else (known, SupportGate(**space.gate))


def support_of(space: EmbeddingSpace, scope: Scope, vector: Vectors) -> float | None:
    """The task's support, a mean cosine; None where the store is too small to tell."""
    sample = samples.get(space, scope)
    return support((sample @ vector).tolist()) if len(sample) >= ENOUGH else None
