"""Any server that speaks OpenAI's /v1/embeddings: a hosted model, Ollama, vLLM, llama.cpp, LM Studio."""

import json
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import openai

from memory.embedding.base import MAX_CHARACTERS, PROBE, EmbeddingRefused, Vectors, encodable, unit_rows
from memory.errors import EmbeddingUnavailable

_REMEDIES: Final = {
    401: "Check SONDER_EMBEDDING_KEY.",
    403: "Check SONDER_EMBEDDING_KEY and what it may use.",
    404: "Check SONDER_EMBEDDING_URL (it ends in /v1) and SONDER_EMBEDDING_MODEL.",
    429: "The server limits requests; it may answer later.",
}
#: What a server answers to a text that it will not take: malformed, too large, not to be processed (RFC 9110, 15.5).
_REFUSALS: Final = frozenset({400, 413, 422})
#: The HTTP library that the client is built on, httpx or its successor: its own errors come out of a body that breaks
#: off.
_HTTP: Final = import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


class OpenAICompatibleProvider:
    """`model` on the server at `base_url` (ending in /v1).

    `revision` is the operator's label, since the protocol has none: change it when the server's model changes, and a
    new space is opened. `dimension` is learned by a probe unless given, and may not change afterwards. `timeout` is in
    seconds, for each attempt to the first byte of the answer and again for the whole of it. Lessons are embedded in
    requests of at most `batch_size` texts and tried again `max_retries` times; a query is tried once, because an answer
    by words alone is better than a late one.

    Every failure is EmbeddingUnavailable, of the kind EmbeddingRefused if it lies with the texts. Nothing that the
    server wrote is repeated in it, because servers quote keys.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        revision: str = "unlabelled",
        dimension: int | None = None,
        timeout: float = 10.0,
        max_retries: int = 2,
        batch_size: int = 64,
    ) -> None:
        self.model = model
        self.revision = revision
        self._dimension = dimension
        self._batch_size = batch_size
        self._timeout = timeout
        self._server = f"The embedding server {_without_credentials(base_url)}"
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # the client insists on some key; a server that needs none ignores it
            timeout=timeout,
            max_retries=max_retries,
        )
        self._once = self._client.with_options(max_retries=0)

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed_query(PROBE)
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        starts = range(0, len(texts), self._batch_size)
        parts = [self._vectors(self._client, texts[start : start + self._batch_size]) for start in starts]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._vectors(self._once, [text])[0]
        return row

    def check(self) -> None:
        self.embed_query(PROBE)  # once: lessons and queries go the same way, and who asks waits for the answer

    def close(self) -> None:
        """Closes the connections to the server."""
        self._client.close()

    def _vectors(self, client: openai.OpenAI, texts: Sequence[str]) -> Vectors:
        rows = self._in_order(self._request(client, texts), len(texts))
        expected = len(rows[0]) if self._dimension is None else self._dimension
        vectors = unit_rows(rows, count=len(texts), dimension=expected, source=self._server)
        self._dimension = expected  # learned from the first sound answer, whichever thread gets it
        return vectors

    def _request(self, client: openai.OpenAI, texts: Sequence[str]) -> Any:
        """The decoded body of the server's answer, whatever it is."""
        try:
            with client.embeddings.with_streaming_response.create(
                model=self.model,
                input=[encodable(text[:MAX_CHARACTERS]) for text in texts],
                encoding_format="float",
            ) as answer:
                return json.loads(self._body(answer.iter_bytes()))
        except openai.APIStatusError as error:
            remedy = _REMEDIES.get(error.status_code, "Look into the server's log.")
            kind = EmbeddingRefused if error.status_code in _REFUSALS else EmbeddingUnavailable
            raise kind(f"{self._server} answered HTTP {error.status_code}. {remedy}") from None
        except (openai.APITimeoutError, _HTTP.TimeoutException):
            raise self._late() from None
        except (openai.OpenAIError, _HTTP.HTTPError) as error:
            raise EmbeddingUnavailable(f"{self._server} cannot be reached ({type(error).__name__}).") from None
        except (ValueError, RecursionError):
            raise EmbeddingUnavailable(f"{self._server} answered with something that is not JSON.") from None

    def _body(self, pieces: Iterable[bytes]) -> bytes:
        """The whole body. The client waits for each piece anew, so a server that drips would hold it for ever."""
        end = time.monotonic() + self._timeout
        body = bytearray()
        for piece in pieces:
            body += piece
            if time.monotonic() > end:
                raise self._late()
        return bytes(body)

    def _late(self) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(f"{self._server} did not answer in time.")

    def _in_order(self, payload: Any, count: int) -> list[list[Any]]:
        """One row a text, in the order of the texts, by the indexes that the server gave."""
        try:
            by_index = {item["index"]: item["embedding"] for item in payload["data"]}
            rows = [by_index[index] for index in range(count)]
            if len(payload["data"]) == count and all(isinstance(row, list) for row in rows):
                return rows
        except (KeyError, TypeError):
            pass
        raise EmbeddingUnavailable(f"{self._server} did not answer with one vector for each of {count} texts.")


def _without_credentials(url: str) -> str:
    """Scheme, host and path only: user names, passwords and queries may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
