"""The query's words as PostgreSQL sees them, and how rare each is."""

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from memory.models.lesson import JOINERS
from memory.models.sql import fetch
from memory.rules.text import identifiers

MAX_TERMS = 32  # a task of a thousand words searches with its rarest ones
MAX_LEXEME = 2046  # bytes; PostgreSQL refuses a longer one in a tsquery, and no lesson has one
_REFRESH_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Term:
    """One word to search for."""

    column: str  # `search` (stemmed English) or `identifiers` (code, verbatim)
    lexeme: str
    frequency: float  # expected number of lessons that have it
    idf: float  # BM25's inverse document frequency, > 0


@dataclass(frozen=True, kw_only=True)
class Frequencies:
    """What PostgreSQL's own statistics say about the lessons' words, as of the last ANALYZE."""

    rows: float
    shares: Mapping[tuple[str, str], float]  # (column, lexeme) -> share of lessons that have it
    rarest: float  # share below which PostgreSQL did not keep a word


def idf(frequency: float, rows: float) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), Robertson and Zaragoza 2009; always above 0."""
    known = min(frequency, rows)
    return math.log1p((rows - known + 0.5) / (known + 0.5))


class _Statistics:
    """`pg_stats` of the two columns, read at most every five minutes by each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = -math.inf
        self._value = Frequencies(rows=0, shares={}, rarest=0)

    def get(self) -> Frequencies:
        with self._lock:
            if time.monotonic() - self._read_at > _REFRESH_SECONDS:
                self._value = _read()
                self._read_at = time.monotonic()
            return self._value

    def forget(self) -> None:
        """After an import: its ANALYZE has changed the numbers."""
        with self._lock:
            self._read_at = -math.inf


statistics = _Statistics()


def _read() -> Frequencies:
    listed = fetch(
        """
        SELECT attname, most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
        WHERE schemaname = current_schema() AND tablename = 'lesson' AND attname IN ('search', 'identifiers')
            AND most_common_elems IS NOT NULL
        """
    )
    # Behind the shares of the words stand the lowest and the highest of them.
    shares = {(column, word): share for column, words, own in listed for word, share in zip(words, own, strict=False)}
    ((rows,),) = fetch("SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'lesson'::regclass")
    return Frequencies(rows=rows, shares=shares, rarest=min(shares.values(), default=0.0))


def query_terms(text: str) -> list[Term]:
    """The query's distinct terms, rarest first, at most MAX_TERMS; ties in alphabetical order."""
    split = "translate(%s, %s, repeat(' ', length(%s)))"
    joiners = f"{JOINERS}_"  # the parser splits at `_` too, but takes seconds for a long text that is full of them
    ((words,),) = fetch(f"SELECT tsvector_to_array(to_tsvector('english', {split}))", [text, joiners, joiners])
    known = statistics.get()
    rows = max(known.rows, 1.0)
    keys = [("search", word) for word in words]
    keys += [("identifiers", name) for name in identifiers(text) if len(name) <= MAX_LEXEME]
    terms = []
    for column, lexeme in keys:
        # A word that the statistics do not list is rarer than any that they do.
        frequency = known.shares.get((column, lexeme), known.rarest / 2) * rows
        terms.append(Term(column=column, lexeme=lexeme, frequency=frequency, idf=idf(frequency, rows)))
    return sorted(terms, key=lambda term: (-term.idf, term.column, term.lexeme))[:MAX_TERMS]


def within_budget(terms: list[Term], budget: int) -> list[Term]:
    """The rarest terms whose lessons together stay within the budget: the ones worth fetching candidates for."""
    chosen: list[Term] = []
    total = 0.0
    for term in terms:
        total += term.frequency
        if total > budget:
            break
        chosen.append(term)
    return chosen


def tsquery(lexeme: str) -> str:
    """A lexeme as tsquery text, quoted so that nothing in it is an operator."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
