"""Up to four measured curves over one axis, with what is plausible around each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from review.charts.drawing import (
    MEDIUM,
    Anchor,
    Drawing,
    Table,
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
from review.charts.scales import plain, round_top

NO_POINTS: Final = "Nothing measured yet."
#: Colour and dash of each curve in turn; the legend shows both, so colour is never alone.
LOOKS: Final = ("lesson", "curve-second second", "curve-base base", "curve-loss loss")
LEFT: Final = 48.0  # px, for the labels of the upright axis
HEIGHT: Final = 200.0  # px
LEGEND: Final = 20.0  # px, a line of the legend
SIDES: Final[tuple[Anchor, ...]] = ("start", "middle", "end")  # how the three labels of the lower axis stand
MOST_ROWS: Final = 40  # of a curve in the table


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of one thing, from left to right."""

    label: str
    x: tuple[float, ...]  # ascending; of a histogram the left edges of the bins
    y: tuple[float, ...]  # as long as x
    low: tuple[float, ...] = ()  # 95% interval of each y, or empty
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.low) != len(self.high) or len(self.low) not in (0, len(self.x)):
            raise ValueError(f"The curve {self.label!r} has {len(self.x)} places but other numbers of values.")
        for value in (*self.x, *self.y, *self.low, *self.high):
            finite(value)


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the two axes are, and upright marks on the lower one."""

    x: str
    y: str
    marks: tuple[tuple[float, str], ...] = ()  # a place on the lower axis and what stands there
    stepped: bool = False  # a histogram: each value holds until the next place


@dataclass(frozen=True, kw_only=True)
class _Range:
    """From numbers between two bounds to px."""

    low: float
    high: float
    start: float  # px at `low`
    end: float  # px at `high`

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    @property
    def ticks(self) -> tuple[float, ...]:
        middle = 0.0 if self.low < 0 < self.high else (self.low + self.high) / 2
        return self.low, middle, self.high


def curves(prefix: str, drawn: Sequence[Curve], axes: Axes, *, title: str) -> SafeString:
    """The curves with a legend. Raises ValueError for more than four: small multiples say more then."""
    if len(drawn) > len(LOOKS):
        raise ValueError(f"{len(drawn)} curves in one chart cannot be told apart; {len(LOOKS)} can.")
    return responsive(
        prefix,
        kind="chart-curves",
        title=title,
        conclusion=_conclusion(drawn, axes),
        draw=lambda width: _drawing(drawn, axes, width),
        wide=MEDIUM,
    )


def curves_table(drawn: Sequence[Curve], axes: Axes, *, title: str) -> Table:
    """Every place of every curve; of long ones as many as people read, the last among them."""
    rows = []
    for curve in drawn:
        step = math.ceil(len(curve.x) / MOST_ROWS) if curve.x else 1
        for i in sorted({*range(0, len(curve.x), step), *([len(curve.x) - 1] if curve.x else [])}):
            between = f"{_told(curve.low[i])} to {_told(curve.high[i])}" if curve.low else ""
            rows.append((curve.label, _told(curve.x[i]), _told(curve.y[i]), between))
    return Table(caption=title, header=("Curve", axes.x, axes.y, "Plausible (95%)"), rows=tuple(rows))


def _told(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _conclusion(drawn: Sequence[Curve], axes: Axes) -> str:
    ends = [f"{c.label}: {_told(c.y[-1])} at {_told(c.x[-1])}" for c in drawn if c.x]
    if not ends:
        return NO_POINTS
    peaks = [f"{c.label}: highest at {_told(c.x[max(range(len(c.y)), key=c.y.__getitem__)])}" for c in drawn if c.x]
    return f"{axes.y} by {axes.x}. {'; '.join(peaks if axes.stepped else ends)}."


def _drawing(drawn: Sequence[Curve], axes: Axes, width: float) -> Drawing:
    shown = [curve for curve in drawn if curve.x]
    if not shown:
        return nothing(NO_POINTS)
    legend, top = _legend(shown, width)
    bottom = top + HEIGHT
    x, y = _scales(shown, axes, width, top + 16, bottom)
    parts = [*legend, text(0, top, fit(axes.y, width), "muted")]
    parts += [line(LEFT, y(tick), width, y(tick), "axis" if tick == y.low else "grid") for tick in y.ticks]
    parts += [text(LEFT - 6, y(tick) + 4, _tick(tick), "muted", "end") for tick in y.ticks]
    for place, side in zip(x.ticks, SIDES, strict=True):
        parts.append(text(x(place), bottom + 16, _tick(place), "muted", side))
    parts.append(text(width, bottom + 34, fit(axes.x, width - LEFT), "muted", "end"))
    for curve, look in zip(shown, LOOKS, strict=False):
        parts += _curve(curve, look, axes, x, y)
    parts += _marks(axes, x, top + 16, bottom)
    return Drawing(height=bottom + 40, body=join(parts))


def _scales(shown: Sequence[Curve], axes: Axes, width: float, top: float, bottom: float) -> tuple[_Range, _Range]:
    places = [place for curve in shown for place in curve.x] + [place for place, _ in axes.marks]
    first, last = min(places), max(places)
    if first > 0 and first < (last - first):
        first = 0.0  # an axis that nearly starts at 0 starts there
    if last == first:
        last = first + 1
    values = [value for curve in shown for value in (*curve.y, *curve.low, *curve.high)]
    lowest = -round_top([-value for value in values]) if min(values) < 0 else 0.0
    x = _Range(low=first, high=last, start=LEFT, end=width)
    return x, _Range(low=lowest, high=round_top([max(0.0, value) for value in values]), start=bottom, end=top)


def _tick(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value:.0e}"  # longer ones would not fit beside the axis
    return f"{value:,.0f}" if abs(value) >= 1000 else plain(value)


def _legend(shown: Sequence[Curve], width: float) -> tuple[list[SafeString], float]:
    """The names beside a stroke of each curve, as many lines as needed; and where the chart begins."""
    parts: list[SafeString] = []
    at, row = 0.0, 12.0
    for curve, look in zip(shown, LOOKS, strict=False):
        name = fit(curve.label, width - 36)
        needed = 30 + width_of(name)
        if at and at + needed > width:
            at, row = 0.0, row + LEGEND
        parts.append(line(at, row - 4, at + 22, row - 4, f"line {look}"))
        parts.append(text(at + 28, row, name))
        at += needed + 14
    return parts, row + LEGEND + 4


def _curve(curve: Curve, look: str, axes: Axes, x: _Range, y: _Range) -> list[SafeString]:
    parts: list[SafeString] = []
    if curve.low and not axes.stepped and len(curve.x) > 1:
        lows = [(x(place), y(value)) for place, value in zip(curve.x, curve.low, strict=True)]
        highs = [(x(place), y(value)) for place, value in zip(curve.x, curve.high, strict=True)]
        parts.append(polygon([*lows, *reversed(highs)], f"curve-band {look}"))
    points = [(x(place), y(value)) for place, value in zip(curve.x, curve.y, strict=True)]
    if axes.stepped:
        ends = [*(px for px, _ in points[1:]), points[-1][0]]
        points = [corner for (px, py), end in zip(points, ends, strict=True) for corner in ((px, py), (end, py))]
    return [*parts, polyline(points, f"line {look}")]


def _marks(axes: Axes, x: _Range, top: float, bottom: float) -> list[SafeString]:
    parts: list[SafeString] = []
    for i, (place, words) in enumerate(axes.marks):
        at = x(place)
        far = at > (x.start + x.end) / 2
        anchor: Anchor = "end" if far else "start"
        parts.append(line(at, top, at, bottom, "axis threshold-quarantined"))
        shown = fit(words, max(at - x.start, x.end - at) - 6)
        parts.append(text(at - 4 if far else at + 4, top + 12 + 15 * (i % 4), shown, "halo", anchor))
    return parts
