"""Both searches together, and the whole retrieval after them."""

from django.db import transaction
from django.utils import timezone

from evaluation.performance.bench import DEPTH, EVERYTHING, Bench
from evaluation.performance.finding import Finding, compared
from evaluation.performance.semantic import RAW, raw_top
from evaluation.performance.timing import Side, in_turns
from memory.rules.fusion import reciprocal_rank_fusion
from memory.search import find
from memory.search.lexical import lexical
from memory.search.semantic import semantic
from memory.search.terms import query_terms

#: Multiples of the raw top 20 that fusion may take, by lessons.
BARS = {100_000: 3.0, 1_000_000: 4.0}


def fused(bench: Bench, i: int) -> object:
    """Words read, 40 lessons by meaning, 40 by words, one order."""
    near = semantic(bench.space, bench.tasks.vectors[i], EVERYTHING, DEPTH, ("active",))
    worded = lexical(query_terms(bench.tasks.texts[i]), EVERYTHING, DEPTH)
    by_meaning = {hit.lesson_id: place for place, hit in enumerate(near, start=1)}
    by_words = {hit.lesson_id: place for place, hit in enumerate(worded, start=1)}
    lessons = dict.fromkeys([*by_meaning, *by_words])
    return sorted(lessons, key=lambda i: -reciprocal_rank_fusion(by_meaning.get(i), by_words.get(i)))


def speed(bench: Bench) -> list[Finding]:
    now = timezone.now()
    with transaction.atomic():
        taken = in_turns(
            {
                "raw": raw_top(bench),
                "fused": Side(act=lambda i: fused(bench, i)),
                "find": Side(act=lambda i: find(bench.query(i), EVERYTHING, 5, now)),
            }
        )
    return [
        compared(
            bench.lessons,
            "hybrid.fused",
            "hybrid: 40 by meaning, 40 by words, fused",
            ours=taken["fused"],
            floor=taken["raw"],
            against=RAW,
            at_most=BARS.get(bench.lessons),
        ),
        compared(
            bench.lessons,
            "hybrid.find",
            "whole retrieval: hybrid, evidence, gate, MMR, controls",
            ours=taken["find"],
            floor=taken["raw"],
            against=RAW,
        ),
    ]
