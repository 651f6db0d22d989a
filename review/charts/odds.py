"""The ledger of odds, row by row, against the thresholds that decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from memory.rules.outlook import odds_in_words
from review.charts.drawing import (
    Drawing,
    Table,
    circle,
    counted,
    finite,
    fit,
    join,
    line,
    nothing,
    polygon,
    polyline,
    responsive,
    text,
    width_of,
)
from review.charts.scales import Logarithmic

#: Odds beyond it are drawn on the upper edge: no decision depends on how far beyond a million they are.
HIGHEST: Final = 1e6
PLOT: Final = 168.0  # px
NO_ROWS: Final = "The ledger has no rows yet."


@dataclass(frozen=True, kw_only=True)
class OddsRow:
    """The account after one judged serving."""

    label: str  # what names the serving in the table: its day or task
    lost: bool  # a loss; else a win
    odds: float  # after this row, finite, >= 1

    def __post_init__(self) -> None:
        finite(self.odds)


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Odds at which something happens."""

    trial: float = 10.0  # from here on a coin decides
    release: float = 50.0  # a quarantined lesson is freed at these odds or below
    quarantine: float = 200.0  # a loss at these odds quarantines

    @property
    def named(self) -> tuple[tuple[float, str], ...]:
        return (self.trial, "on trial"), (self.release, "freed"), (self.quarantine, "quarantined")


DEFAULTS: Final = Thresholds()


def odds_line(prefix: str, rows: Sequence[OddsRow], *, title: str, thresholds: Thresholds = DEFAULTS) -> SafeString:
    """The odds after each row, oldest first, on a scale on which each step is as high as it weighs."""
    return responsive(
        prefix,
        kind="chart-odds",
        title=title,
        conclusion=_conclusion(rows, thresholds),
        draw=lambda width: _plot(rows, thresholds, width) if rows else nothing(NO_ROWS),
    )


def odds_table(rows: Sequence[OddsRow], *, title: str) -> Table:
    cells = tuple(
        (str(i), row.label, "Loss" if row.lost else "Win", f"{odds_in_words(row.odds)} : 1")
        for i, row in enumerate(rows, 1)
    )
    return Table(caption=title, header=("Row", "Serving", "Result", "Odds after it"), rows=cells)


def _conclusion(rows: Sequence[OddsRow], thresholds: Thresholds) -> str:
    if not rows:
        return NO_ROWS
    lost = sum(row.lost for row in rows)
    lines = ", ".join(f"{name} at {value:g} : 1" for value, name in thresholds.named)
    return (
        f"After {counted(len(rows), 'row')}, {lost} of them lost, the odds are {odds_in_words(rows[-1].odds)} : 1; the "
        f"highest were {odds_in_words(max(row.odds for row in rows))} : 1. Thresholds: {lines}."
    )


def _plot(rows: Sequence[OddsRow], thresholds: Thresholds, width: float) -> Drawing:
    right = width - 12 - max(width_of(_threshold(value, name)) for value, name in thresholds.named)
    top = min(HIGHEST, max([thresholds.quarantine * 3, *(row.odds * 2 for row in rows)]))
    y = Logarithmic(top=top, start=30 + PLOT, end=30)
    step = (right - 14) / max(1, len(rows) - 1)
    places = [(7 + i * step, y(row.odds)) for i, row in enumerate(rows)]
    size = min(4.5, max(2.0, 0.45 * step))
    parts = [line(0, y(1), right, y(1), "axis"), *_thresholds(thresholds, y, right)]
    parts.append(polyline(places, "line lesson"))
    parts += [_point(place, row.lost, size) for place, row in zip(places, rows, strict=True)]
    parts.append(text(0, 13, f"{odds_in_words(rows[-1].odds)} : 1", "strong"))
    lost = sum(row.lost for row in rows)
    parts.append(text(width, 13, f"{counted(len(rows), 'row')}, {lost} lost", "muted", "end"))
    parts.append(text(0, y(1) + 17, fit(rows[0].label, right / 2 - 10), "muted"))
    if len(rows) > 1:
        parts.append(text(right, y(1) + 17, fit(rows[-1].label, right / 2 - 10), "muted", "end"))
    return Drawing(height=PLOT + 78, body=join([*parts, *_key(PLOT + 72)]))


def _thresholds(thresholds: Thresholds, y: Logarithmic, right: float) -> list[SafeString]:
    """Each as a line whose name stands beside the plot, where no account crosses it."""
    parts: list[SafeString] = [text(right + 8, y(1) + 4, "1 : 1", "muted")]
    for value, name in thresholds.named:
        parts += [line(0, y(value), right, y(value), f"threshold threshold-{name.replace(' ', '-')}")]
        parts += [text(right + 8, y(value) + 4, _threshold(value, name), "muted")]
    return parts


def _threshold(value: float, name: str) -> str:
    return f"{value:g} {name}"


def _point(place: tuple[float, float], lost: bool, size: float = 4.5) -> SafeString:
    x, y = place
    if lost:
        corners = [(x - size, y - 0.8 * size), (x + size, y - 0.8 * size), (x, y + size)]
        return polygon(corners, "mark-loss loss")
    return circle(x, y, 0.8 * size, "mark-win win")


def _key(y: float) -> list[SafeString]:
    return [
        _point((6, y - 4), lost=True),
        text(16, y, "loss", "muted"),
        _point((62, y - 4), lost=False),
        text(71, y, "win", "muted"),
    ]
