"""What there is to measure, and in which stores."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from evaluation.performance import (
    accounts,
    credit,
    duplicates,
    hybrid,
    lexical,
    over_http,
    pages,
    peers,
    semantic,
    writes,
)
from evaluation.performance.bench import Bench
from evaluation.performance.corpus import Corpus
from evaluation.performance.finding import Finding
from evaluation.performance.store import Say, Shape, open_store
from evaluation.performance.timing import ROUNDS

SIZES: Final = "1000,10000,100000"  # lessons
MILLION: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Something to measure."""

    measure: Callable[[Bench], list[Finding]]
    shapes: Callable[[], list[Shape]]  # the stores to measure it in
    beside: tuple[Shape, ...] = ()  # stores that must be there as well


@dataclass(frozen=True, kw_only=True)
class Step:
    """One measurement in one store."""

    name: str  # of the measurement
    shape: Shape
    act: Callable[[Say], list[Finding]]


def is_full() -> bool:
    """Whether a million lessons and ten million usage rows are wanted."""
    return os.environ.get("BENCH_FULL") == "1"


def sizes() -> list[int]:
    """Lessons of the stores whose size is free, ascending."""
    chosen = {int(size) for size in os.environ.get("BENCH_SIZES", SIZES).split(",")}
    return sorted(chosen | {MILLION} if is_full() else chosen)


def _whole() -> list[Shape]:
    return [Shape(lessons=size) for size in sizes()]


def _of_accounts() -> list[Shape]:
    return [Shape(lessons=size, servings=0, accounts=accounts.ACCOUNTS) for size in sizes()]


def _with_twins() -> list[Shape]:
    return [Shape(lessons=size, twins=True) for size in sizes() if size in duplicates.ROUNDS]


def _of_peers() -> list[Shape]:
    return [shape for shape in _whole() if shape.lessons <= peers.LARGEST] if peers.installed() else []


MEASUREMENTS: Final[dict[str, Measurement]] = {
    "meaning": Measurement(measure=semantic.speed, shapes=_whole),
    "recall": Measurement(measure=semantic.recalls, shapes=_whole),
    "words": Measurement(measure=lexical.speed, shapes=_whole),
    "precision": Measurement(measure=lexical.precisions, shapes=_whole),
    "hybrid": Measurement(measure=hybrid.speed, shapes=_whole),
    "http": Measurement(measure=over_http.speed, shapes=_whole),
    "scan": Measurement(measure=semantic.full_scan, shapes=_whole),
    "quarantine": Measurement(measure=semantic.after_quarantine, shapes=_whole),
    "accounts": Measurement(measure=accounts.measure, shapes=_of_accounts),
    "credit": Measurement(
        measure=credit.growth,
        shapes=lambda: [credit.LARGE, credit.HUGE] if is_full() else [credit.LARGE],
        beside=(credit.SMALL,),
    ),
    "writes": Measurement(measure=writes.measure, shapes=lambda: [writes.SHAPE]),
    "duplicates": Measurement(measure=duplicates.measure, shapes=_with_twins),
    "peers": Measurement(measure=peers.measure, shapes=_of_peers),
    "pages": Measurement(measure=pages.measure, shapes=lambda: [pages.SHAPE]),
}


def steps(corpus: Corpus, only: Collection[str]) -> list[Step]:
    """Everything, or the measurements named; the small stores first."""
    found = [
        _step(name, MEASUREMENTS[name], shape, corpus)
        for name in MEASUREMENTS
        if not only or name in only
        for shape in MEASUREMENTS[name].shapes()
    ]
    return sorted(found, key=lambda step: step.shape.lessons)


def _step(name: str, measurement: Measurement, shape: Shape, corpus: Corpus) -> Step:
    def act(say: Say) -> list[Finding]:
        for other in measurement.beside:
            open_store(other, corpus, say)
        space = open_store(shape, corpus, say)
        bench = Bench(shape=shape, space=space, tasks=corpus.tasks(ROUNDS), common=corpus.common_tasks(ROUNDS))
        return measurement.measure(bench)

    return Step(name=name, shape=shape, act=act)
