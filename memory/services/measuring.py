"""Asks labelled questions of the store and notes what retrieval considered: what a relevance gate is fitted to.

Look-ups only: nothing is recorded, and no lesson counts as served.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import transaction
from django.utils import timezone

from memory.embedding import Vectors
from memory.embedding.active import provider
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.rules.calibration import Pair, Question
from memory.search import EmbeddedQuery, Ranked, Scope, find
from memory.search.details import details, read_halfvec
from memory.search.support import ENOUGH, SEED, support_of
from memory.search.terms import query_terms
from memory.services.labelled import Asked, Evidence

K: Final = 5  # lessons asked for, as agents do
Tell = Callable[[int, int], None]  # questions asked, questions in all
_READ: Final = 5000  # lessons among which those of other topics are sought
#: Of the lessons, the part that is least like the one that fits: other topics. On the real lessons the best of these
#: for a task are as similar to it as the best of all are to an off-domain question (median 0.19, highest 0.42).
_OTHERS: Final = 0.3
_BEST: Final = 5  # of them, those that a gate could hand out


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What retrieval considered, before any gate."""

    tasks: tuple[Question, ...]
    off_domain: tuple[Question, ...]
    other_topics: tuple[Question, ...]  # tasks beside lessons of other topics alone; their support is not known


def with_thresholds(space: EmbeddingSpace, **thresholds: Any) -> EmbeddingSpace:
    """The space with other thresholds, to look things up in; not to be saved."""
    values = {field.attname: getattr(space, field.attname) for field in EmbeddingSpace._meta.fields}
    return EmbeddingSpace(**{**values, **thresholds})


def ungated(space: EmbeddingSpace) -> EmbeddingSpace:
    """The space with a gate that lets everything through."""
    return with_thresholds(space, min_similarity=-1.0, uncorroborated_min_similarity=-1.0, gate=None)


def measure(evidence: Evidence, space: EmbeddingSpace, tell: Tell = lambda done, total: None) -> Measured:
    """Asks every question once. Raises EmbeddingUnavailable."""
    now, every = timezone.now(), len(evidence.tasks) + len(evidence.off_domain)
    open_space, others = ungated(space), OtherTopics()
    tasks, beside, off_domain = [], [], []
    for asked in evidence.tasks:
        query = embedded(asked, open_space)
        tasks.append(ask(query, asked, now))
        beside.append(others.beside(query, asked))
        tell(len(tasks), every)
    for asked in evidence.off_domain:
        off_domain.append(ask(embedded(asked, open_space), asked, now))
        tell(len(tasks) + len(off_domain), every)
    return Measured(
        tasks=tuple(tasks),
        off_domain=tuple(off_domain),
        other_topics=tuple(question for question in beside if question is not None),
    )


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """A question's text and unit vector in a space."""

    text: str
    space: EmbeddingSpace
    vector: Vectors

    @property
    def query(self) -> EmbeddedQuery:
        """As retrieval takes it."""
        return EmbeddedQuery(text=self.text, space=self.space, vector=self.vector)


def embedded(asked: Asked, space: EmbeddingSpace) -> Embedded:
    """The question, ready to search with in this space."""
    return Embedded(text=asked.text, space=space, vector=provider().embed_query(asked.text))


def considered(question: Embedded, scope: Scope, now: datetime) -> list[Ranked]:
    """Every lesson in service that retrieval considers before its gate, best first; the question's space is ungated."""
    with transaction.atomic():
        found = find(question.query, scope, K, now).considered
    return [ranked for ranked, _ in found if ranked.candidate.state == "active" and ranked.candidate.cosine is not None]


def ask(question: Embedded, asked: Asked, now: datetime) -> Question:
    """The question as a gate sees it."""
    return Question(
        pairs=tuple(
            Pair(
                cosine=ranked.candidate.cosine or 0.0,
                shared_anchors=ranked.candidate.shared_anchors,
                fits=ranked.candidate.lesson_id in asked.fits,
            )
            for ranked in considered(question, asked.scope, now)
        ),
        support=support_of(question.space, asked.scope, question.vector),
    )


class OtherTopics:
    """Lessons by scope, read once: what a task is set beside as if the store held no lesson of its topic."""

    def __init__(self) -> None:
        self._read: dict[Scope, tuple[list[UUID], Vectors]] = {}

    def beside(self, question: Embedded, asked: Asked) -> Question | None:
        """The task beside lessons unlike those that fit it; None where the store holds too few to tell."""
        if asked.scope not in self._read:
            self._read[asked.scope] = _vectors(question.space, asked.scope)
        ids, vectors = self._read[asked.scope]
        fitting = [i for i, pk in enumerate(ids) if pk in asked.fits]
        if len(ids) < ENOUGH or not fitting:
            return None
        likeness = (vectors @ vectors[fitting].T).max(axis=1)
        unlike = np.argsort(likeness, kind="stable")[: int(len(ids) * _OTHERS)]
        nearest = unlike[np.argsort(-(vectors[unlike] @ question.vector), kind="stable")[:_BEST]]
        found = details(question.query, query_terms(question.text), [ids[i] for i in nearest], {})
        pairs = [Pair(cosine=c.cosine or 0.0, shared_anchors=c.shared_anchors) for c in found]
        return Question(pairs=tuple(sorted(pairs, key=lambda pair: -pair.cosine)))


def _vectors(space: EmbeddingSpace, scope: Scope) -> tuple[list[UUID], Vectors]:
    """Ids and unit vectors (n, dimension) of at most _READ active lessons."""
    reviewed = "AND reviewed" if scope.reviewed_only else ""
    rows = fetch(
        f"""
        SELECT lesson_id, halfvec_send(embedding) FROM lesson_embedding
        WHERE space_id = %s AND state = 'active' AND account_id IS NOT DISTINCT FROM %s {reviewed}
        ORDER BY uuid_hash_extended(lesson_id, {SEED}) LIMIT {_READ}
        """,
        [space.pk, scope.account_id],
    )
    vectors = np.stack([read_halfvec(raw) for _, raw in rows]) if rows else np.empty((0, 0), dtype=np.float32)
    return [pk for pk, _ in rows], vectors


def best_cosines(questions: Sequence[Question], *, fitting: bool = False) -> list[float]:
    """Of each question the highest cosine, with a lesson that fits or with any; none where there is no such lesson."""
    found = [[pair.cosine for pair in question.pairs if pair.fits or not fitting] for question in questions]
    return [max(cosines) for cosines in found if cosines]
