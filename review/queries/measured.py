"""What the product measured of itself: the reports that are part of it, and those that were made here."""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString

from evaluation.catalogue import COMMITTED, EVALUATIONS, read
from evaluation.report import Cell, Figure, Plot, Report, interval, number
from evaluation.report import Table as Rows
from review.charts import Axes, Curve, Table, curves, curves_table


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One evaluation, whether it was run or not."""

    name: str
    answers: str  # what it answers, a clause
    ours: Report | None  # the report that is part of the product
    here: Report | None  # made in this installation

    @property
    def report(self) -> Report | None:
        """What was measured here says more about this store than what was measured elsewhere."""
        return self.here or self.ours


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A plot, ready for the page."""

    title: str
    svg: SafeString
    table: Table


def evaluations() -> list[Evaluation]:
    """Every evaluation in the order of the catalogue; reads two small files each."""
    here = Path(settings.SONDER_VAR) / "reports"
    return [
        Evaluation(name=name, answers=answers, ours=read(name, COMMITTED), here=read(name, here))
        for name, answers in EVALUATIONS.items()
    ]


def pictures(report: Report) -> list[Picture]:
    return [_picture(f"plot-{i}", plot) for i, plot in enumerate(report.plots)]


def _picture(prefix: str, plot: Plot) -> Picture:
    drawn = [Curve(label=s.label, x=s.x, y=s.y, low=s.low, high=s.high) for s in plot.series]
    axes = Axes(x=plot.x_label, y=plot.y_label, marks=plot.marks, stepped=plot.kind == "steps")
    return Picture(
        title=plot.title,
        svg=curves(prefix, drawn, axes, title=plot.title),
        table=curves_table(drawn, axes, title=plot.title),
    )


def figures(report: Report) -> list[tuple[Figure, str, str]]:
    """Each figure with its value and its interval as people read them."""
    return [(figure, number(figure.value, figure.unit), interval(figure)) for figure in report.figures]


def tables(report: Report) -> list[tuple[Rows, list[list[str]]]]:
    """Each table with its cells as people read them."""
    return [(table, [[_cell(cell) for cell in row] for row in table.rows]) for table in report.tables]


def _cell(cell: Cell) -> str:
    return "" if cell is None else number(cell)
