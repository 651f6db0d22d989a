"""A provider without a model, for tests: texts that share words get similar vectors, the same on every machine."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from memory.embedding.base import Vectors, encodable, probe, unit_rows

_WORD: Final = re.compile(r"\w+")
_SUFFIX: Final = re.compile(r"(?<=\w{3})(ings?|ed|es|s|ly|e)$")
#: English function words, which say nothing about a subject.
_STOP: Final = re.compile(
    r"(a|an|and|are|as|at|be|by|do|for|from|how|i|in|into|is|it|its|my|of|on|or|so|that|the|then|this|to|use|was|what|when"
    r"|where|which|who|why|with|you|your)"
)


class HashingProvider:
    """Feature hashing of word stems (Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009).

    Each stem adds or subtracts the square root of its count in one of `dimension` components. It knows no synonyms.
    """

    model = "hashing"
    revision = "1"

    def __init__(self, *, dimension: int = 384) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dimension))
        for row, text in zip(rows, texts, strict=True):
            for stem, count in _stems(text).items():
                digest = int.from_bytes(hashlib.sha256(stem.encode()).digest()[:8], "big")
                row[(digest >> 1) % self.dimension] += count**0.5 * (1 if digest & 1 else -1)
            if not row.any():  # no words, or words that cancel out
                row[0] = 1.0
        return unit_rows(rows, count=len(texts), dimension=self.dimension, source="The hashing provider")

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed([text])[0]
        return row

    def check(self) -> None:
        probe(self)


def _stems(text: str) -> Counter[str]:
    """Stems with their counts; a text of stop words or symbols only counts as one word of its own."""
    words = [word for word in _WORD.findall(encodable(text).casefold()) if not _STOP.fullmatch(word)]
    return Counter(_SUFFIX.sub("", word) for word in words) or Counter([encodable(text).casefold()])
