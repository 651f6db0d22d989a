"""Search by words: how fast, and how much of what exact BM25 would find."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import numpy as np
from django.db import transaction

from evaluation.performance.bench import DEPTH, EVERYTHING, TOP, Bench, raw_cursor
from evaluation.performance.finding import Bar, Finding, compared
from evaluation.performance.timing import ROUNDS, Floats, Side, in_turns, mean, median_ms
from memory.models.sql import fetch
from memory.search.lexical import lexical
from memory.search.terms import Term, query_terms, tsquery

K1: Final = 1.2
B: Final = 0.75
LIMIT_MS: Final = {10_000: 5.0, 100_000: 5.0, 1_000_000: 10.0}


@dataclass(frozen=True, kw_only=True)
class Postings:
    """The lessons that have one term."""

    lessons: list[int] = field(default_factory=list)  # numbers of lessons
    counts: list[int] = field(default_factory=list)  # how often each has it


class Bm25:
    """BM25 over every lesson in service, computed from the stored words. Robertson and Zaragoza 2009, equation 3.15."""

    def __init__(self, terms: set[tuple[str, str]]) -> None:
        rows = fetch(
            "SELECT id, coalesce((SELECT sum(cardinality(positions)) FROM unnest(search)), 0) FROM lesson "
            "WHERE state = 'active' ORDER BY id"
        )
        self.ids: list[UUID] = [row[0] for row in rows]
        self._length = np.array([row[1] for row in rows], dtype=np.float64)
        self._postings: dict[tuple[str, str], Postings] = defaultdict(Postings)
        number = {lesson: n for n, lesson in enumerate(self.ids)}
        for column in ("search", "identifiers"):
            wanted = [lexeme for own, lexeme in terms if own == column]
            for lexeme, lesson, count in fetch(
                f"SELECT u.lexeme, l.id, coalesce(cardinality(u.positions), 1) FROM lesson l, unnest(l.{column}) u "
                "WHERE l.state = 'active' AND u.lexeme = ANY(%s)",
                [wanted],
            ):
                postings = self._postings[column, lexeme]
                postings.lessons.append(number[lesson])
                postings.counts.append(count)

    def scores(self, terms: list[Term], k1: float = K1, b: float = B) -> Floats:
        """Each lesson's score, in the order of `ids`."""
        scores = np.zeros(len(self.ids))
        shape = k1 * (1 - b + b * self._length / self._length.mean())
        for term in terms:
            postings = self._postings[term.column, term.lexeme]
            n = len(postings.lessons)
            idf = math.log1p((len(self.ids) - n + 0.5) / (n + 0.5))
            lessons, counts = np.array(postings.lessons, dtype=int), np.array(postings.counts, dtype=float)
            scores[lessons] += idf * counts * (k1 + 1) / (counts + shape[lessons])
        return scores


def precision(truth: Bm25, terms: list[Term], k1: float, b: float) -> float:
    """The share of our first 20 that are among BM25's, of equal scores any; NaN where no lesson has a word."""
    scores = truth.scores(terms, k1, b)
    least = np.sort(scores)[-TOP]
    good = {truth.ids[i] for i in np.flatnonzero((scores >= least - 1e-9) & (scores > 0))}
    found = [hit.lesson_id for hit in lexical(terms, EVERYTHING, DEPTH) if hit.state == "active"][:TOP]
    return sum(lesson in good for lesson in found) / min(TOP, len(good)) if good else math.nan


def precisions(bench: Bench) -> list[Finding]:
    queries = [query_terms(text) for text in bench.tasks.texts[:ROUNDS]]
    truth = Bm25({(term.column, term.lexeme) for terms in queries for term in terms})
    findings = []
    for key, what, k1, b, bar in (
        (
            "precision",
            f"precision@20 of words against exact BM25 (k1 = {K1}, b = {B})",
            K1,
            B,
            Bar(limit=0.85, at_least=True),
        ),
        (
            "precision_meant",
            "precision@20 of words against exact BM25 with k1 = 0, the score that is meant",
            0.0,
            0.0,
            None,
        ),
    ):
        shares = np.array([precision(truth, terms, k1, b) for terms in queries])
        known = shares[~np.isnan(shares)]
        findings.append(
            Finding(key=f"words.{key}", lessons=bench.lessons, what=what, result=mean(known), unit="share", bar=bar)
        )
    return findings


def speed(bench: Bench) -> list[Finding]:
    usual = [query_terms(text) for text in bench.tasks.texts]
    common = [query_terms(text) for text in bench.common]
    cursor = raw_cursor()
    ranked = (
        f"SELECT id, ts_rank_cd(search, query) AS score FROM lesson, to_tsquery('simple', %s) AS query "
        f"WHERE search @@ query AND state = 'active' ORDER BY score DESC LIMIT {TOP}"
    ).encode()
    alternatives = [" | ".join(tsquery(t.lexeme) for t in terms if t.column == "search") for terms in usual]
    with transaction.atomic():
        taken = in_turns(
            {
                "rank": Side(act=lambda i: cursor.execute(ranked, [alternatives[i]]).fetchall()),
                "usual": Side(act=lambda i: lexical(usual[i], EVERYTHING, DEPTH)),
                "common": Side(act=lambda i: lexical(common[i % len(common)], EVERYTHING, DEPTH)),
            }
        )
    return [
        Finding(
            key="words.speed",
            lessons=bench.lessons,
            what="words, 40 lessons",
            result=median_ms(taken["usual"]),
            unit="ms",
            floor="ts_rank_cd over all matches",
            floor_ms=median_ms(taken["rank"]).value,
            ours_ms=median_ms(taken["usual"]).value,
            bar=Bar(limit=LIMIT_MS.get(bench.lessons, 5.0)),
        ),
        compared(
            bench.lessons,
            "words.common",
            "a task of frequent words only",
            ours=taken["common"],
            floor=taken["usual"],
            against="a usual task",
            at_most=2,
        ),
    ]
