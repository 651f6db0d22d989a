"""The values that pass through retrieval, in order: query, candidate, what is found.

Those that come by the dozen are named tuples: as immutable as the others, and made in a third of the time.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from memory.embedding import Vectors
from memory.models import EmbeddingSpace
from memory.models.sql import vector_literal


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which lessons a search may see. Made from the credential, once."""

    account_id: UUID | None  # lessons of this account; None where lessons are global
    reviewed_only: bool  # a gated account is handed approved lessons only


@dataclass(frozen=True, kw_only=True)
class EmbeddedQuery:
    """A task, ready to search with. Made before any transaction opens, since a model may be slow."""

    text: str
    space: EmbeddingSpace | None  # None: words alone
    vector: Vectors | None  # float32 unit vector (dimension,)
    note: str = ""  # why there is no vector, for the answer and the log

    @cached_property
    def literal(self) -> str | None:
        """The vector as pgvector reads it, written once for all statements that send it."""
        return None if self.vector is None else vector_literal(self.vector.tolist())

    @property
    def mode(self) -> str:
        return "hybrid" if self.vector is not None else "lexical"


class SemanticHit(NamedTuple):
    """A lesson near the query."""

    lesson_id: UUID
    state: str
    cosine: float


class LexicalHit(NamedTuple):
    """A lesson that shares words with the query."""

    lesson_id: UUID
    state: str
    score: float  # sum of the idf of the query's words that it has


class Evidence(NamedTuple):
    """The strongest evidence class of a lesson that has rows."""

    n: int = 0
    reward: Decimal = Decimal(0)  # total

    @property
    def mean(self) -> float:
        return float(self.reward) / self.n if self.n else 0.0


class Candidate(NamedTuple):
    """A lesson under consideration, with everything that ranking needs."""

    lesson_id: UUID
    text: str
    text_sha256: str
    state: str
    fresh_at: float  # Unix seconds: of its latest win, else of its creation; a datetime for each would take 1 ms
    cosine: float | None
    lexical_score: float | None
    shared_anchors: int  # content words of the query that the lesson has
    coverage: float  # share of the query's idf that they carry, in [0, 1]
    evidence: Evidence
    last_loss_at: datetime | None  # of a quarantined lesson
    quarantined_at: datetime | None
    on_trial: bool  # a coin decides whether it is served
    s: float | None  # the ledger's S at its last evaluation, in nats
    released_s: float | None  # the same when a reviewer released it to trial
    d: float | None  # evidence of its probation rows, in nats


class Ranked(NamedTuple):
    """A candidate in its place, with every number that put it there."""

    candidate: Candidate
    semantic_rank: int | None
    lexical_rank: int | None
    fused: float  # reciprocal rank fusion of the two ranks
    boost: float  # usage boost added to it
    age_factor: float  # multiplied in
    score: float  # (fused + boost) * age_factor
    reason: str = ""  # why the relevance gate refused it; empty when it passed


@dataclass(frozen=True, kw_only=True)
class Found:
    """One lesson of an answer."""

    ranked: Ranked
    rank: int  # from 1
    mmr: float | None  # marginal relevance when it was picked; None in lexical mode
