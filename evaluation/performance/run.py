"""Every measurement at every size, and the report."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from evaluation.performance import accounts, credit, hybrid, lexical, over_http, pages, semantic
from evaluation.performance.bench import Bench
from evaluation.performance.corpus import Corpus
from evaluation.performance.finding import Finding
from evaluation.performance.machine import describe
from evaluation.performance.report import REPORT, page
from evaluation.performance.store import Say, Shape, open_store
from evaluation.performance.timing import ROUNDS
from memory.embedding.active import provider

MILLION: Final = 1_000_000

#: By name. `quarantine` comes last: it changes the store, and the next run makes that anew.
MEASUREMENTS: Final[dict[str, Callable[[Bench], list[Finding]]]] = {
    "meaning": semantic.speed,
    "recall": semantic.recalls,
    "words": lexical.speed,
    "precision": lexical.precisions,
    "hybrid": hybrid.speed,
    "http": over_http.speed,
    "scan": semantic.full_scan,
    "quarantine": semantic.after_quarantine,
}
ACCOUNTS: Final = "accounts"
CREDIT: Final = "credit"
PAGES: Final = "pages"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do, and what to say meanwhile."""

    name: str
    act: Callable[[Say], list[Finding]]


def sizes() -> list[int]:
    """Lessons of each store."""
    chosen = [int(size) for size in os.environ.get("BENCH_SIZES", "10000,100000").split(",")]
    return [*chosen, MILLION] if os.environ.get("BENCH_FULL") == "1" and MILLION not in chosen else chosen


def steps(corpus: Corpus, only: Collection[str]) -> Iterator[Step]:
    """Everything, or the measurements named."""

    def measured(shape: Shape, measure: Callable[[Bench], list[Finding]]) -> Callable[[Say], list[Finding]]:
        return lambda say: measure(_bench(shape, corpus, say))

    for size in sizes():
        for name, measure in MEASUREMENTS.items():
            if not only or name in only:
                yield Step(name=f"{size:,} lessons, {name}", act=measured(Shape(lessons=size), measure))
        if not only or ACCOUNTS in only:
            shape = Shape(lessons=size, servings=0, accounts=accounts.ACCOUNTS)
            yield Step(name=f"{size:,} lessons, {ACCOUNTS}", act=measured(shape, accounts.measure))
    if not only or CREDIT in only:
        yield Step(name=CREDIT, act=lambda say: _credit(corpus, say))
    if not only or PAGES in only:
        yield Step(name=f"{pages.SHAPE.lessons:,} lessons, {PAGES}", act=measured(pages.SHAPE, pages.measure))


def _bench(shape: Shape, corpus: Corpus, say: Say) -> Bench:
    space = open_store(shape, corpus, say)
    return Bench(shape=shape, space=space, tasks=corpus.tasks(ROUNDS), common=corpus.common_tasks(ROUNDS))


def _credit(corpus: Corpus, say: Say) -> list[Finding]:
    for shape in (credit.SMALL, credit.LARGE):
        open_store(shape, corpus, say)
    return [credit.outcome_cost()]


def run(only: Collection[str]) -> None:
    """Measures, prints, and writes the report if it is whole."""
    corpus = Corpus(provider())
    findings: list[Finding] = []
    todo = list(steps(corpus, only))
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("", total=len(todo))
        for step in todo:
            progress.update(task, description=step.name)
            findings += step.act(lambda doing: progress.update(task, description=f"making a store: {doing}"))
            progress.advance(task)
    report = page(findings, describe())
    Console().print(report, markup=False, highlight=False, soft_wrap=True)
    if not only:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(report, encoding="utf-8")
