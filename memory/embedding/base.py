"""What every embedding provider offers, and the checks that all of them pass their vectors through."""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.errors import EmbeddingUnavailable

Vectors = NDArray[np.float32]

#: What `check` embeds: any words do.
PROBE = "Close the file before renaming it."

#: Characters that are read of a text. Models read 256 to 8,192 tokens; the smaller windows are filled by far less in
#: prose of any language, and a megabyte would be thrown away by the model or refused.
MAX_CHARACTERS: Final = 20_000


class EmbeddingRefused(EmbeddingUnavailable):
    """The model works and will not take this text: asking again with the same text changes nothing."""


class EmbeddingProvider(Protocol):
    """Text to unit vectors. Model, revision and dimension together name the embedding space.

    Providers are safe to share between threads. Whatever goes wrong is EmbeddingUnavailable, with the remedy.
    """

    @property
    def model(self) -> str:
        """The model's public name."""

    @property
    def revision(self) -> str:
        """What tells two versions of the model apart; another revision is another space."""

    @property
    def dimension(self) -> int:
        """Components of a vector. May ask the model the first time."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Texts to keep, as float32 unit rows (n, dimension), in the order given."""

    def embed_query(self, text: str) -> Vectors:
        """A text to search with, as a float32 unit vector (dimension,)."""

    def check(self) -> None:
        """Embeds a probe; returns if that works and raises EmbeddingUnavailable if not."""


def unit_rows(raw: ArrayLike, *, count: int, dimension: int, source: str) -> Vectors:
    """`raw` as (count, dimension) float32 unit rows.

    Raises EmbeddingUnavailable, naming `source`, if the shape is another, a number is not finite, or a row is
    zero: such a vector would match everything or nothing.
    """
    if count == 0:
        return np.empty((0, dimension), dtype=np.float32)
    try:
        rows = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EmbeddingUnavailable(f"{source} answered with vectors that are not rows of numbers.") from None
    if rows.shape != (count, dimension):
        raise EmbeddingUnavailable(
            f"{source} answered with vectors of shape {rows.shape}; {(count, dimension)} was expected. A model of "
            "another dimension is another embedding space: set its name and re-embed."
        )
    if not np.isfinite(rows).all():
        raise EmbeddingUnavailable(f"{source} answered with a vector that holds NaN or infinity.")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    if not (largest > 0).all():
        raise EmbeddingUnavailable(f"{source} answered with a zero vector.")
    rows = rows / largest  # so that no square overflows
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def encodable(text: str) -> str:
    """The text with lone surrogates, which no encoder takes, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def embed_each(provider: EmbeddingProvider, texts: Sequence[str]) -> list[Vectors | None]:
    """Texts to keep as unit vectors (dimension,), in their order; None for a text that the model cannot embed.

    They are sent together. If that fails and the model is sound, each is sent alone, so that one bad text costs the
    others nothing. A text is to blame only if the model embeds a probe right after it: whatever a server answers to a
    text that it cannot take (400, 500, NaN, nothing), it answers a probe well. Raises EmbeddingUnavailable otherwise.
    """
    try:
        return list(provider.embed(texts))
    except EmbeddingUnavailable:
        provider.check()
    if len(texts) == 1:
        return [None]
    return [embed_each(provider, [text])[0] for text in texts]


def probe(provider: EmbeddingProvider) -> None:
    """The body of `check`: a probe that comes back in the right shape."""
    provider.embed([PROBE])
    provider.embed_query(PROBE)
