"""Synthetic lessons and tasks that are like real ones where it matters for search.

Words are the bundled model's own, drawn by Zipf's law in Mandelbrot's form, so that document frequencies span what they
span in real text. A lesson is 10 to 32 words, as nine in ten real ones are, half of them from its topic; nearly half of
the lessons name some code. A task is 3 to 10 words, most of them from one topic.

A vector lies around its topic's, which the real model made from the topic's words, mixed with a second topic's and with
noise of a falling spectrum. The weights were set by 604 real lessons: 604 of these have about the same cosines of all
pairs (mean 0.11, standard deviation 0.11), of nearest neighbours (median 0.55), the same share of variance in the first
components and a local intrinsic dimension of 15 to 25. So the recall of an approximate index means something.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import memory.embedding
from memory.embedding import Vectors
from memory.embedding.base import EmbeddingProvider

SEED: Final = 20260721
VOCABULARY: Final = 20_000  # words
TOKENIZER: Final = Path(memory.embedding.__file__).parent / "minilm" / "tokenizer.json"
TOPICS: Final = 400
TOPIC_WORDS: Final = 24
CODE_SHARE: Final = 0.47  # of lessons that name code
SECOND_WEIGHT, NOISE_WEIGHT = 0.5, 0.9  # of the parts of a vector; its topic has 1
CHUNK: Final = 5_000  # lessons made at once; bounds memory

TWIN_EVERY: Final = 20  # where lessons have twins, one in so many repeats the one before it
TWIN_NOISE: Final = (0.05, 0.5)  # length of what is added to a twin's vector: cosines of 0.999 to 0.894

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive lessons."""

    first: int  # number of the first one, from 0
    texts: list[str]
    vectors: Vectors  # (n, dimension), unit rows


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Tasks to search with."""

    texts: list[str]
    vectors: Vectors  # (n, dimension), unit rows


class Corpus:
    """Any number of lessons, the same for every run: lesson i does not depend on how many there are."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, most frequent first: the whole words that the bundled model's tokenizer knows."""
        known = json.loads(TOKENIZER.read_text(encoding="utf-8"))["model"]["vocab"]
        plain = (word for word in sorted(known, key=known.__getitem__) if word.isascii() and word.isalpha())
        return [word for word in plain if len(word) > 1][:VOCABULARY]

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        """Probability of each word: 1 / (rank + 2.7), Mandelbrot's form of Zipf's law."""
        weights = 1 / (np.arange(VOCABULARY) + 2.7)
        return np.asarray(weights / weights.sum())

    @cached_property
    def _topic_words(self) -> Ints:
        """(TOPICS, TOPIC_WORDS) word numbers; a topic's own words are none of the most frequent ones."""
        rng = np.random.default_rng(SEED + 1)
        shares = self._shares.copy()
        shares[:40] = 0
        shares /= shares.sum()
        return np.stack([rng.choice(VOCABULARY, TOPIC_WORDS, replace=False, p=shares) for _ in range(TOPICS)])

    @cached_property
    def _centres(self) -> Vectors:
        """(TOPICS, dimension): each topic's words as the model sees them."""
        return self._provider.embed([" ".join(self.words[w] for w in topic[:12]) for topic in self._topic_words])

    @cached_property
    def _noise(self) -> NDArray[np.float32]:
        """(dimension, dimension): makes white noise of a spectrum that falls like the real lessons'."""
        rng = np.random.default_rng(SEED + 2)
        d = self._provider.dimension
        rotation, _ = np.linalg.qr(rng.standard_normal((d, d)))
        spectrum = 1 / (np.arange(d) + 4.0) ** 1.6
        return np.asarray(np.sqrt(spectrum / spectrum.sum())[:, None] * rotation, dtype=np.float32)

    def lessons(self, size: int) -> Iterator[Chunk]:
        """The first `size` lessons."""
        for first in range(0, size, CHUNK):
            chunk = self._chunk(first)
            n = min(CHUNK, size - first)
            yield Chunk(first=first, texts=chunk.texts[:n], vectors=chunk.vectors[:n])

    def twinned(self, chunk: Chunk) -> Chunk:
        """The same lessons, of which one in TWIN_EVERY says in nearly the same words what the one before it says."""
        rng = np.random.default_rng([SEED + 5, chunk.first])
        texts, vectors = list(chunk.texts), chunk.vectors.copy()
        for i in range(TWIN_EVERY - 1, len(texts), TWIN_EVERY):
            texts[i] = f"{texts[i - 1][:-1]}, again."
            noise = rng.standard_normal(vectors.shape[1], dtype=np.float32)
            vectors[i] = vectors[i - 1] + rng.uniform(*TWIN_NOISE) * noise / np.linalg.norm(noise)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return Chunk(first=chunk.first, texts=texts, vectors=vectors)

    def _chunk(self, first: int) -> Chunk:
        rng = np.random.default_rng([SEED, first])
        topics = rng.integers(TOPICS, size=CHUNK)
        return Chunk(first=first, texts=self._texts(rng, topics), vectors=self._vectors(rng, topics))

    def _vectors(self, rng: np.random.Generator, topics: Ints) -> Vectors:
        second = self._centres[rng.integers(TOPICS, size=len(topics))]
        noise = rng.standard_normal((len(topics), self._provider.dimension), dtype=np.float32) @ self._noise
        mixed = self._centres[topics] + SECOND_WEIGHT * second + NOISE_WEIGHT * noise
        return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), dtype=np.float32)

    def _texts(self, rng: np.random.Generator, topics: Ints) -> list[str]:
        lengths = rng.normal(28, 6, size=len(topics)).clip(8, 45).astype(int)
        words = self._words(rng, np.repeat(topics, lengths), own_share=0.5)
        names_code = rng.random(len(topics)) < CODE_SHARE
        texts = []
        for own, code in zip(np.split(words, np.cumsum(lengths)[:-1]), names_code, strict=True):
            chosen = [self.words[w] for w in dict.fromkeys(own.tolist())]  # in one sentence hardly a word comes twice
            if code:
                chosen[-1] = f"{chosen[0]}.{chosen[1]}_{chosen[2]}()"
            texts.append(" ".join(chosen).capitalize() + ".")
        return texts

    def _words(self, rng: np.random.Generator, topics: Ints, own_share: float) -> Ints:
        """A word number for each given topic: from the topic, its first words more often, or from the language."""
        n = len(topics)
        own = self._topic_words[topics, (rng.random(n) ** 2 * TOPIC_WORDS).astype(int)]
        common = rng.choice(VOCABULARY, size=n, p=self._shares)
        return np.where(rng.random(n) < own_share, own, common)

    def tasks(self, count: int) -> Tasks:
        """`count` different tasks, each about one topic."""
        rng = np.random.default_rng(SEED + 3)
        texts: dict[str, int] = {}
        while len(texts) < count:
            topic = int(rng.integers(TOPICS))
            words = self._words(rng, np.full(rng.integers(3, 11), topic), own_share=0.7)
            texts.setdefault(" ".join(self.words[w] for w in dict.fromkeys(words.tolist())), topic)
        return Tasks(texts=list(texts), vectors=self._vectors(rng, np.array(list(texts.values()))))

    def common_tasks(self, count: int) -> list[str]:
        """`count` tasks of six frequent words that the lexical search does not ignore as stop words."""
        rng = np.random.default_rng(SEED + 4)
        usual = [word for word in self.words[:400] if len(word) > 5][:40]
        return [" ".join(rng.choice(usual, 6, replace=False)) for _ in range(count)]
