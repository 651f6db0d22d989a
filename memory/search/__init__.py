"""Reading lessons: by meaning, by words, and both together. Nothing here writes."""

from memory.search.hybrid import Retrieved, find
from memory.search.query import embed_query
from memory.search.types import Candidate, EmbeddedQuery, Found, Ranked, Scope

__all__ = ["Candidate", "EmbeddedQuery", "Found", "Ranked", "Retrieved", "Scope", "embed_query", "find"]
