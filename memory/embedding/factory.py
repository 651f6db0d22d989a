"""From a setting's text to a provider."""

from pathlib import Path
from urllib.parse import urlsplit

from memory.embedding.base import EmbeddingProvider
from memory.embedding.hashing import HashingProvider
from memory.embedding.local import LocalProvider

CHOICES = "`local`, `fastembed:<model name>`, `openai` or `hashing`"


def provider_from_spec(
    spec: str,
    *,
    cache_dir: Path,
    url: str | None = None,
    api_key: str | None = None,
    model: str | None = None,
    revision: str | None = None,
    timeout: float = 10.0,
) -> EmbeddingProvider:
    """The provider that `spec` names; nothing is loaded or asked yet.

    `cache_dir` keeps model files. The others belong to `openai`, which needs `url` and `model`; `timeout` is in
    seconds.

    Raises ValueError, naming the choices or the missing setting.
    """
    if spec == "local":
        return LocalProvider(cache_dir=cache_dir)
    if spec == "hashing":
        return HashingProvider()
    if spec.startswith("fastembed:") and spec != "fastembed:":
        from memory.embedding.fastembed_named import FastembedProvider

        return FastembedProvider(spec.removeprefix("fastembed:"), cache_dir=cache_dir)
    if spec == "openai":
        return _openai(url, api_key, model, revision, timeout)
    raise ValueError(f"The embedding provider is {spec!r}; choose {CHOICES}.")


def _openai(
    url: str | None, api_key: str | None, model: str | None, revision: str | None, timeout: float
) -> EmbeddingProvider:
    if not url or not model:
        missing = "SONDER_EMBEDDING_URL" if not url else "SONDER_EMBEDDING_MODEL"
        raise ValueError(f"The embedding provider `openai` needs {missing}.")
    if not _is_address(url):
        raise ValueError("SONDER_EMBEDDING_URL is no address of a server; write it as in http://127.0.0.1:11434/v1.")
    if not (api_key or "").isascii():
        raise ValueError("SONDER_EMBEDDING_KEY has characters that no key has; copy it again.")
    # Imported here: the client takes a third of a second to load and most installations never use it.
    from memory.embedding.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(
        base_url=url, model=model, api_key=api_key, revision=revision or "unlabelled", timeout=timeout
    )


def _is_address(url: str) -> bool:
    """Whether a client can be made for it at all: a scheme, a host and, if there is one, a port that exists."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and url.isprintable()
