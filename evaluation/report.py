"""What an evaluation found: values that the command prints, a file keeps and a page draws.

A report says what was asked, how it was answered and what the answer does not show. It is plain data, so that the
page under Health needs nothing but its file.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

#: Called now and then by a running evaluation: steps done, steps in all, what is being done.
Progress = Callable[[int, int, str], None]
Cell = str | float | int | None

MARKS: Final = {True: "yes", False: "**no**", None: ""}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number that answers the question, with its interval and the bar it is held against."""

    key: str  # stable name, e.g. `base.precision`
    label: str  # what it is, in words
    value: float | None  # in `unit`; None: nothing to compute it from
    low: float | None = None  # 95% interval
    high: float | None = None
    unit: str = ""  # "%", "points", "ms", "per 1,000 evaluations", "" for a plain number
    bar: str = ""  # the bar in words, e.g. "at least 78%"; empty: none
    met: bool | None = None  # whether the bar is met; None: there is none


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows beside each other; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # each as long as `columns`
    note: str = ""  # how to read it


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one thing in a plot."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]  # as long as x
    low: tuple[float, ...] = ()  # 95% interval of each y, or empty
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One picture. `lines` joins the points of each series, `steps` draws a histogram: x are the left edges of bins."""

    title: str  # what it shows; its conclusion where there is one
    kind: Literal["lines", "steps"]
    x_label: str
    y_label: str
    series: tuple[Series, ...]  # at most four
    marks: tuple[tuple[float, str], ...] = ()  # upright lines: x and what stands there, e.g. a threshold


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer of one evaluation."""

    name: str  # `trust`, `retrieval`, `loop`, `replay`
    title: str
    question: str  # what was asked, one sentence
    answer: str  # what was found, one or two sentences
    command: str  # what makes this report again
    made_at: str  # ISO 8601, UTC
    took_s: float  # seconds
    parameters: dict[str, Cell]  # everything the result depends on: seeds, sizes, constants
    figures: tuple[Figure, ...]
    how: str  # how it was measured, a paragraph
    limits: tuple[str, ...]  # what it does not show, a sentence each
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` gives the same report back."""
        return asdict(self)


def from_json(told: dict[str, Any]) -> Report:
    """The report that `to_json` told; `KeyError` or `TypeError` if it is not one."""
    return Report(
        **{
            **told,
            "figures": tuple(Figure(**each) for each in told["figures"]),
            "tables": tuple(_table(each) for each in told["tables"]),
            "plots": tuple(_plot(each) for each in told["plots"]),
            "limits": tuple(told["limits"]),
        }
    )


def _table(told: dict[str, Any]) -> Table:
    return Table(**{**told, "columns": tuple(told["columns"]), "rows": tuple(tuple(row) for row in told["rows"])})


def _plot(told: dict[str, Any]) -> Plot:
    series = tuple(
        Series(**{**each, **{name: tuple(each[name]) for name in ("x", "y", "low", "high")}}) for each in told["series"]
    )
    return Plot(**{**told, "series": series, "marks": tuple((float(x), str(words)) for x, words in told["marks"])})


def number(value: Cell, unit: str = "") -> str:
    """A value as people read it: three digits, no empty precision; an absent one as "none"."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        told = f"{value:,}"
    elif abs(value) >= 100:
        told = f"{value:,.0f}"
    else:
        told = f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
    return f"{told}%" if unit == "%" else f"{told} {unit}".strip()


def interval(figure: Figure) -> str:
    """The 95% interval in brackets, or nothing."""
    if figure.low is None or figure.high is None:
        return ""
    return f"[{number(figure.low)}, {number(figure.high)}]"


def markdown(report: Report) -> str:
    """The whole report as a page."""
    parameters = ", ".join(f"{name} {number(value)}" for name, value in report.parameters.items())
    parts = [
        f"# {report.title}",
        report.question,
        f"**{report.answer}**",
        f"Made by `{report.command}` on {report.made_at[:10]} in {number(report.took_s, 's')}: {parameters}.",
        _figures(report.figures),
        *(f"## {table.title}\n\n{_rows(table)}" for table in report.tables),
        f"## How it was measured\n\n{report.how}",
        "## What it does not show\n\n" + "\n".join(f"* {limit}" for limit in report.limits),
    ]
    return "\n\n".join(parts) + "\n"


def _figures(figures: tuple[Figure, ...]) -> str:
    head = "| figure | value | 95% interval | bar | met |\n| --- | ---: | --- | --- | --- |\n"
    lines = (f"| {f.label} | {number(f.value, f.unit)} | {interval(f)} | {f.bar} | {MARKS[f.met]} |" for f in figures)
    return head + "\n".join(lines)


def _rows(table: Table) -> str:
    head = f"| {' | '.join(table.columns)} |\n| --- |{' ---: |' * (len(table.columns) - 1)}\n"
    body = "\n".join(f"| {' | '.join(number(cell) for cell in row)} |" for row in table.rows)
    return head + body + (f"\n\n{table.note}" if table.note else "")
