"""How fast is fast enough: the bars of speed and scale, in the order of the report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evaluation.performance.finding import Finding


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bar, which one or more findings at each size are held against."""

    name: str  # what the keys of its findings begin with
    what: str
    bar: str  # in words
    command: str = "make bench"  # what measures it


ROWS: Final = (
    Row(
        name="meaning",
        what="Search by meaning: the nearest 20 of 384 dimensions, with filters of state and scope",
        bar="at most 1.3 times the raw statement; recall@20 at least 0.95, also with 5% and 50% kept out and among "
        "5,000 accounts",
    ),
    Row(
        name="words",
        what="Search by words",
        bar="at most 5 ms, 10 ms at a million lessons, twice that for frequent words alone; precision@20 against BM25 "
        "at least 0.85",
    ),
    Row(
        name="hybrid",
        what="Both searches, fused",
        bar="at most 3 times the raw nearest 20 at 100,000 lessons, 4 times at a million",
    ),
    Row(
        name="http",
        what="One retrieval over HTTP with its exposures written",
        bar="at most 1.25 times embedding and SQL alone",
    ),
    Row(
        name="credit",
        what="An outcome credited and its lessons judged, however much was recorded before",
        bar="at most twice what it takes at 10,000 usage rows",
    ),
    Row(
        name="writes",
        what="Interaction, five usage rows, outcome and credit",
        bar="at least half of raw psycopg's rate; 16 writers at once: no deadlock, nothing lost",
    ),
    Row(
        name="duplicates",
        what="A plan of near-duplicates over the whole store",
        bar="at most 1.5 times the better of blocked numpy and the index; recall at least 0.99; under 500 MB at "
        "100,000 lessons",
    ),
    Row(
        name="scan",
        what="Beside the reference system's scan in pure Python",
        bar="at least 100 times as fast at 100,000 lessons",
    ),
    Row(
        name="peers",
        what="Beside chroma and LangGraph's PostgresStore",
        bar="vectors alone: at most 1.5 times chroma, no slower than LangGraph; the whole job: no slower than either",
        command="make bench-peers",
    ),
    Row(
        name="pages",
        what="Every review page, and a decision with the next question",
        bar="the first question within 1 s, a decision within 0.2 s, 95 times in 100",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a bar is met, at every size that it was measured at."""

    row: Row
    sizes: tuple[int, ...]  # lessons, ascending; empty: not measured
    closest: Finding | None  # the judged finding that uses up most of what its bar allows
    missed: tuple[Finding, ...]  # the worst first

    @property
    def met(self) -> bool | None:
        return None if self.closest is None else not self.missed


def verdicts(findings: Iterable[Finding]) -> list[Verdict]:
    """One for each row, in their order; sizes are those at which something was judged."""
    judged = [(f, f.bar.used(f.result.value)) for f in findings if f.bar is not None]
    judged.sort(key=lambda pair: -pair[1])
    return [_verdict(row, [f for f, _ in judged if f.about == row.name]) for row in ROWS]


def _verdict(row: Row, worst_first: list[Finding]) -> Verdict:
    return Verdict(
        row=row,
        sizes=tuple(sorted({f.lessons for f in worst_first})),
        closest=worst_first[0] if worst_first else None,
        missed=tuple(f for f in worst_first if not f.met),
    )
