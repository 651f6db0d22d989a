"""The provider and the embedding space in force."""

from functools import lru_cache
from pathlib import Path
from typing import Final

from memory import conf
from memory.embedding.cache import CachedQueries
from memory.embedding.factory import provider_from_spec
from memory.embedding.guarded import GuardedProvider
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace
from memory.models.rows import Rows
from memory.models.sql import fetch

_SPACE: Final = Rows(EmbeddingSpace, "s")


@lru_cache(maxsize=1)
def _provider(settings: conf.Conf) -> CachedQueries:
    try:
        provider = provider_from_spec(
            settings.embedding,
            cache_dir=Path(settings.var) / "models",
            url=settings.embedding_url or None,
            api_key=settings.embedding_key or None,
            model=settings.embedding_model or None,
            revision=settings.embedding_revision or None,
            timeout=settings.embedding_timeout_seconds,
        )
    except ValueError as error:
        raise EmbeddingUnavailable(f"SONDER_EMBEDDING: {error}") from None
    return CachedQueries(GuardedProvider(provider, settings.embedding_pause_seconds), settings.query_cache)


def provider() -> CachedQueries:
    """The configured provider, one for each process; loads its model on first use."""
    return _provider(conf.current())


def usable_space() -> EmbeddingSpace:
    """The active space, which must be the configured provider's.

    Raises EmbeddingUnavailable if no space is open, or the model was changed without `reembed`: vectors of two
    models are never compared.
    """
    rows = fetch(f"SELECT {_SPACE.columns} FROM embedding_space s WHERE s.is_active")
    if not rows:
        raise EmbeddingUnavailable("No embedding space is open. Run 'manage.py reembed'.")
    space = _SPACE.read(rows[0])
    p = provider()
    p.follow(space.generation)
    if (space.model, space.revision) != (p.model, p.revision) or space.dimension != p.dimension:
        raise EmbeddingUnavailable(
            f"The active embedding space is {space}, but SONDER_EMBEDDING gives {p.model} {p.revision}. Set the "
            "provider back, or run 'manage.py reembed' to move the lessons to the new model."
        )
    return space
