"""What was found, as a page: the bars first, then every number by size of store."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from evaluation.performance import record
from evaluation.performance.bars import Verdict, verdicts
from evaluation.performance.finding import Finding, Unit
from evaluation.performance.how import HOW
from evaluation.performance.machine import Machine
from evaluation.performance.record import Group
from evaluation.performance.timing import Estimate

PAGE: Final = "performance.md"
MARKS: Final = {True: "yes", False: "**no**", None: "not measured"}
SUFFIX: Final[dict[Unit, str]] = {"x": "x", "ms": " ms", "per second": " a second", "MB": " MB"}


def save(groups: Sequence[Group], folder: Path) -> str:
    """Writes the record and its page; returns the page."""
    record.write(groups, folder)
    told = page(groups)
    (folder / PAGE).write_text(told, encoding="utf-8")
    return told


def page(groups: Sequence[Group]) -> str:
    """The whole report as Markdown."""
    found = verdicts(finding for group in groups for finding in group.findings)
    known = [verdict for verdict in found if verdict.met is not None]
    met = f"{sum(verdict.met is True for verdict in known)} of {len(known)} bars met at every size that was measured"
    parts = ["# Performance", f"{met}.", _bars(found), *_machines(groups)]
    for lessons, same in groupby(groups, key=lambda group: group.lessons):
        parts.append(_size(lessons, list(same)))
    return "\n\n".join([*parts, HOW])


def _bars(found: Iterable[Verdict]) -> str:
    head = "| what | bar | judged at | met | closest to the bar |\n| --- | --- | --- | --- | --- |\n"
    return head + "\n".join(_bar(verdict) for verdict in found)


def _bar(v: Verdict) -> str:
    sizes = ", ".join(f"{size:,}" for size in v.sizes) + " lessons" if v.sizes else f"`{v.row.command}` measures it"
    told = v.missed or ((v.closest,) if v.closest else ())
    cells = (v.row.what, v.row.bar, sizes, MARKS[v.met], "; ".join(map(_judged, told)))
    return f"| {' | '.join(cells)} |"


def _judged(f: Finding) -> str:
    where = f"{f.what}, {f.lessons:,} lessons"
    return f"{where}: {number(f.result.value, f.unit)}, {_limit(f)}"


def _machines(groups: Sequence[Group]) -> list[str]:
    """Each machine in a paragraph of its own, with the sizes that it measured if there are several."""
    plain = [(replace(group.machine, fdatasync_ms=0.0), group) for group in groups]
    machines = list(dict.fromkeys(machine for machine, _ in plain))
    told = []
    for machine in machines:
        own = [group for same, group in plain if same == machine]
        sizes = ", ".join(f"{size:,}" for size in sorted({group.lessons for group in own}))
        told.append(_machine(machine, own) + (f" Measured here: {sizes} lessons." if len(machines) > 1 else ""))
    return told


def _machine(m: Machine, groups: Sequence[Group]) -> str:
    syncs = sorted(group.machine.fdatasync_ms for group in groups)
    return (
        f"{m.cores} cores, {m.memory_gb:.0f} GB of memory, {m.system}, Python {m.python}, PostgreSQL {m.postgresql} "
        f"with pgvector {m.pgvector} and {m.shared_buffers} of shared buffers. A page is on the disk after "
        f"{_between(syncs[0], syncs[-1])} ms (fdatasync), which every committed retrieval waits for."
    )


def _between(low: float, high: float) -> str:
    same = f"{low:.2f}" == f"{high:.2f}"
    return f"{low:.2f}" if same else f"{low:.2f} to {high:.2f}"


def _size(lessons: int, groups: Sequence[Group]) -> str:
    days = sorted({group.measured_at[:10] for group in groups})
    took = sum(group.took_s for group in groups)
    when = f"Measured on {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")
    findings = [finding for group in groups for finding in group.findings]
    return f"## {lessons:,} lessons\n\n{when}, in {took:,.0f} s with the making of stores.\n\n{_table(findings)}"


def _table(findings: Sequence[Finding]) -> str:
    head = "| what | beside | its ms | our ms | result | bar | met |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
    return head + "\n".join(_line(finding) for finding in findings)


def _line(f: Finding) -> str:
    met = "" if f.met is None else MARKS[f.met]
    cells = (f.what, f.floor, _ms(f.floor_ms), _ms(f.ours_ms), _result(f.result, f.unit), _limit(f), met)
    return f"| {' | '.join(cells)} |"


def _limit(f: Finding) -> str:
    return "" if f.bar is None else f"{'at least' if f.bar.at_least else 'at most'} {number(f.bar.limit, f.unit)}"


def _result(e: Estimate, unit: Unit) -> str:
    if e.low == e.high == e.value:
        return number(e.value, unit)
    return f"{number(e.value, unit)} [{number(e.low)}, {number(e.high)}]"


def number(value: float, unit: Unit | None = None) -> str:
    """A value with its unit: three digits, no empty precision."""
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return digits + (SUFFIX.get(unit, "") if unit else "")


def _ms(value: float | None) -> str:
    return "" if value is None else number(value)
