"""Measures, and adds what was found to the report step by step: a run that is broken off loses nothing."""

import os
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from evaluation.performance.corpus import Corpus
from evaluation.performance.machine import describe
from evaluation.performance.record import Group, merged, read
from evaluation.performance.report import page, save
from evaluation.performance.steps import Step, steps
from evaluation.performance.store import Say
from memory.embedding.active import provider

#: BENCH_REPORTS names another folder, for a try that is not to be kept.
REPORTS: Final = Path(os.environ.get("BENCH_REPORTS", Path(__file__).resolve().parents[1] / "reports"))


def run(only: Collection[str]) -> None:
    """Everything, or the measurements named."""
    todo = steps(Corpus(provider()), only)
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("", total=len(todo))
        for step in todo:
            name = f"{step.shape.lessons:,} lessons, {step.name}"
            progress.update(task, description=name)
            new = _measured(step, lambda doing: progress.update(task, description=f"making a store: {doing}"))
            progress.console.print(f"{name}: {new.took_s:,.0f} s", highlight=False)
            save(merged(read(REPORTS), new), REPORTS)
            progress.advance(task)
    Console().print(page(read(REPORTS)), markup=False, highlight=False, soft_wrap=True)


def _measured(step: Step, say: Say) -> Group:
    begin = time.perf_counter()
    findings = step.act(say)
    return Group(
        name=step.name,
        lessons=step.shape.lessons,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.perf_counter() - begin, 1),
        machine=describe(),
        findings=tuple(findings),
    )


def rewrite() -> None:
    """The page anew from what was measured before."""
    save(read(REPORTS), REPORTS)
