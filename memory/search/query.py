"""A task made ready to search with."""

import structlog

from memory.embedding.active import provider, usable_space
from memory.errors import EmbeddingUnavailable
from memory.search.types import EmbeddedQuery

log = structlog.get_logger(__name__)


def embed_query(text: str) -> EmbeddedQuery:
    """The task with its vector in the active space; without one, and with the reason, where embeddings are unavailable.

    Call it before a transaction opens: a remote model may take seconds.
    """
    try:
        space = usable_space()
        return EmbeddedQuery(text=text, space=space, vector=provider().embed_query(text))
    except EmbeddingUnavailable as refusal:
        log.warning("embedding_unavailable", reason=refusal.detail)
        return EmbeddedQuery(text=text, space=None, vector=None, note=refusal.detail)
