"""What simpler searches find on the same lessons: meaning alone, words alone, both fused plainly."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np

from memory.embedding import Vectors
from memory.embedding.active import provider
from memory.models import EmbeddingSpace
from memory.models.sql import fetch
from memory.rules.fusion import reciprocal_rank_fusion
from memory.search import Scope
from memory.search.details import read_halfvec
from memory.services.labelled import Asked

#: Above this a store is too large to rank as a whole in memory, and the baselines are left out.
MOST: Final = 20_000
DEEPEST: Final = 100  # ranks that are told
K1, B = 1.2, 0.75  # BM25 as it is usually set


@dataclass(frozen=True, kw_only=True)
class Rankings:
    """Lessons for one question, best first, at most DEEPEST."""

    semantic: tuple[UUID, ...]  # exact cosine
    words: tuple[UUID, ...]  # BM25 over English stems
    fused: tuple[UUID, ...]  # reciprocal ranks of both, k = 60


class Baselines:
    """The lessons of one scope, read whole."""

    def __init__(self, space: EmbeddingSpace, scope: Scope) -> None:
        account = "account_id IS NOT DISTINCT FROM %s"
        rows = fetch(
            "SELECT lesson_id, halfvec_send(embedding) FROM lesson_embedding "
            f"WHERE space_id = %s AND state = 'active' AND {account} ORDER BY 1",
            [space.pk, scope.account_id],
        )
        self._ids: Sequence[UUID] = [pk for pk, _ in rows]
        self._vectors: Vectors = np.stack([read_halfvec(raw) for _, raw in rows])
        found = fetch(
            "SELECT l.id, w.lexeme, cardinality(w.positions) FROM lesson l, unnest(l.search) w "
            f"WHERE l.state = 'active' AND l.{account}",
            [scope.account_id],
        )
        self._words: Mapping[str, dict[UUID, int]] = defaultdict(dict)
        for pk, lexeme, times in found:
            self._words[lexeme][pk] = times
        self._lengths = Counter[UUID]()
        for pk, _, times in found:
            self._lengths[pk] += times
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths))

    @staticmethod
    def affordable(scope: Scope) -> bool:
        """Whether the scope holds few enough lessons."""
        ((n,),) = fetch(
            "SELECT count(*) FROM lesson WHERE state = 'active' AND account_id IS NOT DISTINCT FROM %s",
            [scope.account_id],
        )
        return bool(0 < n <= MOST)

    def rank(self, asked: Asked) -> Rankings:
        """What each finds for a question."""
        cosines = self._vectors @ provider().embed_query(asked.text)
        semantic = [self._ids[i] for i in np.argsort(-cosines, kind="stable")[:DEEPEST]]
        words = self._bm25(asked.text)[:DEEPEST]
        places = [{pk: place for place, pk in enumerate(ranking, start=1)} for ranking in (semantic, words)]
        scores = {pk: reciprocal_rank_fusion(*(each.get(pk) for each in places)) for pk in {*semantic, *words}}
        fused = sorted(scores, key=lambda pk: (-scores[pk], pk))[:DEEPEST]
        return Rankings(semantic=tuple(semantic), words=tuple(words), fused=tuple(fused))

    def _bm25(self, text: str) -> list[UUID]:
        """Robertson and Zaragoza 2009, The Probabilistic Relevance Framework: BM25 and Beyond."""
        ((stems,),) = fetch("SELECT tsvector_to_array(to_tsvector('english', %s))", [text])
        n, scores = len(self._ids), defaultdict[UUID, float](float)
        for stem in stems:
            having = self._words.get(stem, {})
            idf = math.log1p((n - len(having) + 0.5) / (len(having) + 0.5))
            for pk, times in having.items():
                norm = K1 * (1 - B + B * self._lengths[pk] / self._mean)
                scores[pk] += idf * times * (K1 + 1) / (times + norm)
        return sorted(scores, key=lambda pk: (-scores[pk], pk))
