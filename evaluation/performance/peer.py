"""What a user of another store does to get what one retrieval here gives."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evaluation.performance.bench import Bench
from memory import conf
from memory.embedding import Vectors
from memory.models.sql import fetch
from memory.rules.fusion import reciprocal_rank_fusion
from memory.rules.mmr import mmr
from memory.search.details import read_halfvec

BATCH: Final = 1_000  # lessons read, and handed to a peer, at once
WANTED: Final = 5  # lessons of an answer
DEPTH: Final = 40  # lessons of each of the two searches, as here
ASKED: Final = 60  # for DEPTH that are left when what is quarantined has been dropped
POOL: Final = 20  # candidates of an answer


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some lessons of a store, with their vectors as the store keeps them."""

    ids: list[str]
    texts: list[str]
    states: list[str]
    vectors: Vectors  # (n, dimension), unit rows


def batches(bench: Bench) -> Iterator[Batch]:
    """Every lesson of the store, by id."""
    after = "00000000-0000-0000-0000-000000000000"
    while rows := fetch(
        "SELECT l.id::text, l.text, l.state, halfvec_send(e.embedding) FROM lesson l "
        f"JOIN lesson_embedding e ON e.lesson_id = l.id AND e.space_id = '{bench.space.pk}' "
        "WHERE l.id > %s ORDER BY l.id LIMIT %s",
        [after, BATCH],
    ):
        ids, texts, states, raw = zip(*rows, strict=True)
        after = ids[-1]
        vectors = np.stack([read_halfvec(each) for each in raw])
        yield Batch(ids=list(ids), texts=list(texts), states=list(states), vectors=vectors)


@dataclass(frozen=True, kw_only=True)
class Near:
    """A lesson that a peer found."""

    id: str
    text: str
    cosine: float
    vector: Vectors | None  # None where the peer gives none back


class Peer(ABC):
    """Another store that holds the same lessons. Tasks go by their numbers."""

    name: ClassVar[str]
    effort: ClassVar[int]  # candidates that its index keeps in view, as it comes
    words: ClassVar[str]  # what its user adds for a search by words

    def __init__(self, bench: Bench) -> None:
        self.tasks = bench.tasks
        self.min_similarity = bench.space.min_similarity

    @abstractmethod
    def fill(self, lessons: Iterable[Batch]) -> None:
        """Takes every lesson, and makes what a search by words needs beside it."""

    @abstractmethod
    def try_harder(self, effort: int) -> None:
        """Lets the index keep so many candidates in view."""

    @abstractmethod
    def nearest(self, i: int) -> list[str]:
        """The ids of the nearest 20 lessons, whatever their state: vectors alone."""

    @abstractmethod
    def filtered(self, i: int) -> list[str]:
        """The same among those in service, by the peer's own filter of metadata."""

    @abstractmethod
    def candidates(self, i: int) -> list[Near]:
        """DEPTH lessons in service by meaning: more are asked for, and what is quarantined is dropped."""

    @abstractmethod
    def worded(self, i: int) -> list[str]:
        """DEPTH lessons by words, best first; their states are not known here."""

    @abstractmethod
    def get(self, i: int, ids: Collection[str]) -> list[Near]:
        """Those of these lessons that are in service."""

    @abstractmethod
    def record(self, task: str, chosen: Sequence[Near]) -> None:
        """Writes an interaction and what was handed out with it, durably and at once."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what it holds."""

    def work(self, i: int, *, words: bool) -> None:
        """A whole retrieval: searched, fused, gated, varied where vectors are known, and written down."""
        near, by_words = self.candidates(i), dict[str, int]()
        by_meaning = {each.id: place for place, each in enumerate(near, start=1)}
        if words:
            by_words = {pk: place for place, pk in enumerate(self.worded(i), start=1)}
            near += self.get(i, by_words.keys() - by_meaning.keys())
        passed = [each for each in near if each.cosine >= self.min_similarity]
        passed.sort(key=lambda each: -reciprocal_rank_fusion(by_meaning.get(each.id), by_words.get(each.id)))
        self.record(self.tasks.texts[i], varied(passed[:POOL]))


def varied(pool: list[Near]) -> list[Near]:
    """The answer: by maximal marginal relevance, or the first ones where no vectors are known."""
    vectors = [each.vector for each in pool if each.vector is not None]
    if len(vectors) < len(pool) or not pool:
        return pool[:WANTED]
    cosines = np.array([each.cosine for each in pool], dtype=np.float32)
    picks = mmr(cosines, np.stack(vectors), WANTED, conf.current().lambda_mmr).chosen
    return [pool[pick.index] for pick in picks]
