"""A repeated query does not pay for the model again."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from uuid import UUID

from memory.embedding.base import EmbeddingProvider, Vectors, encodable


class CachedQueries:
    """A provider that remembers the `size` most recently used query vectors of another; 0 remembers none.

    Texts of any length cost the same: the key is their SHA-256. Vectors come back read-only, since every caller gets
    the same one. Two threads that miss at once both ask the model, and neither waits for the other. Failures are not
    remembered. Lessons (`embed`) are not cached: each is embedded once. Nothing outlives the space's generation: the
    vector of a task that was erased goes.
    """

    def __init__(self, provider: EmbeddingProvider, size: int) -> None:
        if size < 0:
            raise ValueError(f"The cache size {size} is negative.")
        self._provider = provider
        self._size = size
        self._generation: UUID | None = None
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = Lock()

    @property
    def model(self) -> str:
        return self._provider.model

    @property
    def revision(self) -> str:
        return self._provider.revision

    @property
    def dimension(self) -> int:
        return self._provider.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._provider.embed(texts)

    def follow(self, generation: UUID) -> None:
        """Forgets what was remembered in another generation of the space."""
        with self._lock:
            if self._generation != generation:
                self._generation = generation
                self._vectors.clear()

    def embed_query(self, text: str) -> Vectors:
        key = hashlib.sha256(encodable(text).encode()).digest()
        with self._lock:
            asked_in = self._generation
            if key in self._vectors:
                self._vectors.move_to_end(key)
                return self._vectors[key]
        vector = self._provider.embed_query(text).copy()
        vector.setflags(write=False)
        with self._lock:
            if self._generation == asked_in:
                self._vectors[key] = vector
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return vector

    def check(self) -> None:
        self._provider.check()
