"""The findings as a page."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from evaluation.performance import pages
from evaluation.performance.finding import Finding
from evaluation.performance.machine import Machine
from evaluation.performance.timing import ROUNDS, Estimate

REPORT: Final = Path(__file__).resolve().parents[1] / "reports" / "performance.md"

_HOW: Final = f"""\
## How it was measured

`make bench` builds a store of synthetic lessons for each size in a database of its own, with usage rows, credits and
sums, and one lesson in twenty quarantined. Texts follow Zipf's law; vectors have the spread and the local dimension
of real lessons (`evaluation/performance/corpus.py`). Both sides of a ratio run in turns in one process and, but for
HTTP, on one connection: {ROUNDS} rounds after a warm-up, each with another task. numpy and the embedding model use one
thread. Times are medians, brackets hold 95% bootstrap intervals. Absolute times depend on the machine and on what else
it does, ratios hardly. The raw top 20 searches with the same effort (`hnsw.ef_search`) as ours.

Recall and precision compare with exact search over the same rows. Words are ranked by the sum of their inverse document
frequencies, BM25 with k1 = 0: normalising by length, as BM25's usual constants do, costs recall on real lessons, which
are one sentence each. So two precisions are given: one says how far the order is from the usual BM25's, the other what
bounding the work loses. In the replay that HTTP is compared with, psycopg runs each statement of the same request with
the same parameters, new ids for new rows, in one transaction.

The review pages are looked at in a store of 10,000 lessons and 100,000 servings of its own, with over 5,000 questions
and as many decisions of long ago, in one process and without the network: the result is the time within which 95 of 100
looks (of {pages.LOOKS}) and decisions (of {pages.DECISIONS}) were done, "our ms" their median. A decision is sent,
carried out, and answered with the next question. Files of everything have no bar.
"""


def page(findings: Sequence[Finding], machine: Machine) -> str:
    """The whole report as Markdown."""
    judged = [finding for finding in findings if finding.met is not None]
    missed = [finding for finding in judged if not finding.met]
    verdict = f"{len(judged) - len(missed)} of {len(judged)} bars met."
    parts = ["# Performance", verdict, _machine(machine)]
    for lessons, group in groupby(sorted(findings, key=lambda f: f.lessons), key=lambda f: f.lessons):
        parts.append(f"## {lessons:,} lessons\n\n{_table(list(group))}")
    return "\n\n".join([*parts, _HOW])


def _machine(m: Machine) -> str:
    return (
        f"{m.cores} cores, {m.memory_gb:.0f} GB of memory, {m.system}, Python {m.python}, PostgreSQL {m.postgresql} "
        f"with pgvector {m.pgvector} and {m.shared_buffers} of shared buffers. A page is on the disk after "
        f"{m.fdatasync_ms:.2f} ms (fdatasync), which every committed retrieval waits for."
    )


def _table(findings: Sequence[Finding]) -> str:
    head = "| what | beside | its ms | our ms | result | bar | met |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
    return head + "\n".join(_line(finding) for finding in findings)


def _line(f: Finding) -> str:
    sign = ("at least" if f.bar.at_least else "at most") if f.bar else ""
    bar = f"{sign} {_number(f.bar.limit, f.unit)}" if f.bar else ""
    met = {True: "yes", False: "**no**", None: ""}[f.met]
    cells = (f.what, f.floor, _ms(f.floor_ms), _ms(f.ours_ms), _result(f.result, f.unit), bar, met)
    return f"| {' | '.join(cells)} |"


def _result(e: Estimate, unit: str) -> str:
    low, high = (_number(value, "") for value in (e.low, e.high))
    return f"{_number(e.value, unit)} [{low}, {high}]"


def _number(value: float, unit: str) -> str:
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return digits + {"x": "x", "ms": " ms", "per second": " a second"}.get(unit, "")


def _ms(value: float | None) -> str:
    return "" if value is None else _number(value, "")
