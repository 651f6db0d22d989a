"""What stands before every call of a model: no database connection waits for it, and a dead one is not asked again."""

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, TypeVar

import structlog
from django.db import connection

from memory.embedding.base import EmbeddingProvider, EmbeddingRefused, Vectors
from memory.errors import EmbeddingUnavailable

T = TypeVar("T")

#: Failures in a row after which the model counts as away: one may be a hiccup, three are none.
FAILURES: Final = 3

log = structlog.get_logger(__name__)


class GuardedProvider:
    """A provider behind a circuit breaker (Nygard, Release It!, 2007), whose calls hold no database connection.

    After FAILURES failures in a row every call fails at once for `pause` seconds, so that requests go on with words
    alone and do not each wait for the same silence. Then one call tries the model: its success ends the pause, and its
    failure starts the next. A text that the model refuses is no failure of the model. Safe to share between threads.

    A connection that is in no transaction goes back to the pool before the model is called: a model that takes long
    would otherwise keep as many connections from everybody as there are requests that wait for it.
    """

    def __init__(self, provider: EmbeddingProvider, pause: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider = provider
        self._pause = pause
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._closed_until = 0.0  # on the clock; of interest only from FAILURES on
        self._reason = ""
        # Known once asked for, since both stay. Not a `cached_property`: up to Python 3.11 it lets one thread in at a
        # time, and the others would wait for the model with their connections in hand.
        self._revision: str | None = None
        self._dimension: int | None = None

    @property
    def model(self) -> str:
        return self._provider.model

    @property
    def revision(self) -> str:
        if self._revision is None:
            self._revision = self._call(lambda: self._provider.revision)
        return self._revision

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = self._call(lambda: self._provider.dimension)
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._call(lambda: self._provider.embed(texts))

    def embed_query(self, text: str) -> Vectors:
        return self._call(lambda: self._provider.embed_query(text))

    def check(self) -> None:
        self._call(self._provider.check)

    def _call(self, action: Callable[[], T]) -> T:
        self._enter()
        release_connection()
        try:
            result = action()
        except EmbeddingRefused:
            self._succeeded()
            raise
        except EmbeddingUnavailable as failure:
            self._failed(failure.detail)
            raise
        self._succeeded()
        return result

    def _enter(self) -> None:
        """Lets the call through, or raises EmbeddingUnavailable with the reason of the last failure."""
        with self._lock:
            if self._failures < FAILURES:
                return
            now = self._clock()
            if now < self._closed_until:
                raise EmbeddingUnavailable(
                    f"{self._reason} It is not asked again for up to {self._pause:g} seconds "
                    "(SONDER_EMBEDDING_PAUSE_SECONDS)."
                )
            self._closed_until = now + self._pause  # this call tries, the others go on waiting

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def _failed(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            self._reason = reason
            if self._failures < FAILURES:
                return
            self._closed_until = self._clock() + self._pause
        log.warning("embedding_paused", seconds=self._pause, reason=reason)


def release_connection() -> None:
    """Gives this thread's database connection back to the pool, unless a transaction is open on it."""
    if not connection.in_atomic_block:
        connection.close()
