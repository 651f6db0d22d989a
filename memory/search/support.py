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
    """The sample of each scope in one space and its generation, read at most every five minutes by each process.

    A space is read before its sample. So what is kept for a generation was read in it or later, and whoever comes
    after a quarantine or an erasure, in any process, has another generation and reads again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: tuple[UUID, UUID] | None = None  # the space and generation of all that is kept
        self._kept: OrderedDict[Scope, tuple[float, Vectors]] = OrderedDict()

    def get(self, space: EmbeddingSpace, scope: Scope) -> Vectors:
        of = (space.pk, space.generation)
        with self._lock:
            if self._of != of:
                self._of = of
                self._kept.clear()
            read_at, sample = self._kept.get(scope, (-np.inf, np.empty((0, 0), dtype=np.float32)))
        if time.monotonic() - read_at > _KEEP_SECONDS:
            sample = _read(space, scope)
            with self._lock:
                if self._of == of:  # else another thread has seen a later one: this sample is for this answer alone
                    self._keep(scope, sample)
        return sample

    def _keep(self, scope: Scope, sample: Vectors) -> None:
        self._kept[scope] = (time.monotonic(), sample)
        self._kept.move_to_end(scope)
        while len(self._kept) > _KEEP_SCOPES:
            self._kept.popitem(last=False)

    def forget(self) -> None:
        """After an import."""
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
