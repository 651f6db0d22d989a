"""What follows from the measured slopes for stores that are many times as large: the tables of docs/growth.md.

`python -m evaluation.growth.arithmetic` writes them anew from the record. Everything is taken to grow as the number of
lessons or of exposures does, but for building the vector index, whose power was measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.growth.parts import REPORTS, read
from evaluation.report import Cell, Report, number

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "growth.md"
START, END = "<!-- arithmetic: start -->\n", "<!-- arithmetic: end -->\n"
LESSONS: Final = (10**6, 10**7, 10**8)
EXPOSURES: Final = (10**7, 10**8, 10**9)
SERVINGS: Final = 5  # exposures of each lesson in the stores that were measured
GB: Final = 1e9
FREEZE_AT: Final = 2e8  # transactions after which PostgreSQL vacuums every table anyway: autovacuum_freeze_max_age
UNITS: Final = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "s"))


@dataclass(frozen=True, kw_only=True)
class Line:
    """Something that grows."""

    what: str
    unit: str  # GB, seconds, or what is counted
    each: float  # of one lesson or exposure
    power: float = 1.0  # of their number
    base: float = 1.0  # the number at which `each` was measured, where the power is not 1

    def at(self, n: float) -> str:
        """As the table tells it."""
        value = self.each * n * (n / self.base) ** (self.power - 1)
        return duration(value) if self.unit == "seconds" else number(float(f"{value:.2g}"), self.unit)


def duration(seconds: float) -> str:
    """In the largest unit of which there are two or more."""
    size, name = next((unit for unit in UNITS if seconds >= 2 * unit[0]), UNITS[-1])
    return f"{number(float(f'{seconds / size:.2g}'))} {name}"


def tables(reports: Mapping[str, Report]) -> str:
    """Both tables as Markdown. Raises KeyError if a part was not measured."""
    return f"{_table('lessons', LESSONS, of_lessons(reports))}\n{_table('exposures', EXPOSURES, of_work(reports))}"


def of_lessons(reports: Mapping[str, Report]) -> list[Line]:
    """What grows with the lessons."""
    sizes = reports["sizes"]
    known, largest = figures(sizes), _largest(sizes)

    def page(name: str) -> float:
        return cell(sizes, "Pages and jobs, ms", name, f"{largest:,} lessons") / 1000 / largest

    def kept(name: str) -> float:
        return cell(sizes, "Upkeep", largest, name) / largest

    return [
        Line(what="on the disk: texts, words, vectors, standings, their indexes", unit="GB",
             each=known["sizes.lesson_bytes"] / GB),
        Line(what="of it the vector index, which belongs in memory", unit="GB", each=known["sizes.vector_bytes"] / GB),
        Line(what="memory to build that index in", unit="GB", each=known["sizes.build_bytes"] / GB),
        Line(what="time to build it there", unit="seconds", each=known["sizes.build_us"] / 1e6,
             power=max(1.0, known["sizes.build_power"]), base=largest),  # below 1 it is the machine's unrest
        Line(what="a look at health, or what Prometheus asks for", unit="seconds", each=page("metrics")),
        Line(what="the search for lessons without a vector, every 30 s", unit="seconds",
             each=page("job: embedding sweep")),
        Line(what="`doctor`", unit="seconds", each=page("doctor")),
        Line(what="a backup", unit="seconds", each=kept("backup, s")),
        Line(what="lessons that a rare word is taken to be in", unit="",
             each=kept("share of lessons below which none has") * largest / 2),
    ]  # fmt: skip


def of_work(reports: Mapping[str, Report]) -> list[Line]:
    """What grows with the exposures, five of which make a loop at most."""
    known = figures(reports["sizes"]) | figures(reports["load"])
    loops, largest = 1 / known["sizes.usage_rows"], _largest(reports["sizes"])
    freeze = cell(reports["sizes"], "Upkeep", largest, "VACUUM FREEZE of lesson_usage, s") / (SERVINGS * largest)
    return [
        Line(what="loops", unit="", each=loops),
        Line(what="until then, at the most loops a second that were measured", unit="seconds",
             each=loops / known["load.best"]),
        Line(what="the same at what the worker credits", unit="seconds", each=loops / known["load.credited"]),
        Line(what="on the disk: all that a loop adds", unit="GB", each=loops * known["sizes.loop_bytes"] / GB),
        Line(what="of it exposures", unit="GB", each=known["sizes.usage_bytes"] / GB),
        Line(what="a vacuum of the exposures that reads all of them", unit="seconds", each=freeze),
        Line(what="times that PostgreSQL asks for one, for its counter of transactions", unit="",
             each=loops * known["sizes.transactions"] / FREEZE_AT),
        Line(what="write-ahead log written", unit="GB", each=loops * known["sizes.log_bytes"] / GB),
    ]  # fmt: skip


def figures(report: Report) -> dict[str, float]:
    """By their keys, those that have a value."""
    return {figure.key: figure.value for figure in report.figures if figure.value is not None}


def cell(report: Report, title: str, row: Cell, column: str) -> float:
    """A number in one of its tables, whose rows are named by their first cells. Raises KeyError where there is none."""
    tables = {table.title: table for table in report.tables}
    cells = {cells[0]: cells for cells in tables[title].rows}[row]
    return float(dict(zip(tables[title].columns, cells, strict=True))[column] or 0)


def _largest(sizes: Report) -> int:
    """Lessons of the largest store."""
    return int(sizes.parameters["lessons"] or 0)


def _table(unit: str, numbers: Sequence[int], lines: Sequence[Line]) -> str:
    head = f"| | {' | '.join(f'{n / 1e6:,.0f} million {unit}' for n in numbers)} |\n| --- |{' ---: |' * len(numbers)}\n"
    return head + "".join(f"| {line.what} | {' | '.join(line.at(n) for n in numbers)} |\n" for line in lines)


def page_with_tables(page: str, reports: Mapping[str, Report]) -> str:
    """The page with what is between its two marks replaced."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}{tables(reports)}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), read(REPORTS)), encoding="utf-8")
