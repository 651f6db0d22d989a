"""Text to unit vectors, behind one Protocol.

``local`` is the bundled model; ``fastembed:<name>`` any model that fastembed knows; ``openai`` any server with
/v1/embeddings; ``hashing`` a fake without a model for tests. Vectors of different models, revisions or dimensions are
never compared.
"""

from memory.embedding.base import EmbeddingProvider, EmbeddingRefused, Vectors
from memory.embedding.cache import CachedQueries
from memory.embedding.factory import provider_from_spec
from memory.embedding.presets import SpacePreset, preset_for
from memory.errors import EmbeddingUnavailable

__all__ = [
    "CachedQueries",
    "EmbeddingProvider",
    "EmbeddingRefused",
    "EmbeddingUnavailable",
    "SpacePreset",
    "Vectors",
    "preset_for",
    "provider_from_spec",
]
