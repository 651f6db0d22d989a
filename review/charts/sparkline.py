"""A small line of one number over time, whose last value is printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.utils.safestring import SafeString

from memory.rules.description import percent, span
from memory.rules.health import Interval, wilson
from review.charts.drawing import (
    Drawing,
    Table,
    circle,
    finite,
    framed,
    join,
    line,
    nothing,
    polygon,
    polyline,
    text,
    width_of,
)
from review.charts.scales import Linear, round_top

Form = Literal["count", "rate"]

WIDTH: Final = 200
HEIGHT: Final = 40
UNMEASURED: Final = "Nothing measured yet."


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One period."""

    label: str  # which, for instance "week of 3 Nov"
    value: float | None  # finite, >= 0; None where nothing was measured
    interval: Interval | None = None  # what is plausible, for a rate
    n: int | None = None  # on how many cases a rate rests

    def __post_init__(self) -> None:
        finite(self.value or 0.0)

    @classmethod
    def rate(cls, label: str, hits: int, n: int) -> "Moment":
        """A share with its Wilson interval; without cases a gap."""
        return cls(label=label, value=hits / n if n else None, interval=wilson(hits, n) if n else None, n=n)


def sparkline(prefix: str, moments: Sequence[Moment], *, title: str, form: Form = "count") -> SafeString:
    """Values from 0 up; a gap where nothing was measured; a band of what is plausible where that is known."""
    drawing = _spark(moments, form) if _measured(moments) else nothing(UNMEASURED)
    return framed(
        prefix,
        kind="chart-spark",
        title=title,
        conclusion=_conclusion(moments, form),
        width=WIDTH,
        drawing=drawing,
    )


def sparkline_table(moments: Sequence[Moment], *, title: str, form: Form = "count") -> Table:
    if form == "count":
        rows = tuple((m.label, _shown(m.value, form)) for m in moments)
        return Table(caption=title, header=("When", "Value"), rows=rows)
    rates = tuple(
        (
            m.label,
            _shown(m.value, form),
            span(m.interval) if m.interval else "",
            "" if m.n is None else f"{m.n:,}",
        )
        for m in moments
    )
    return Table(caption=title, header=("When", "Value", "Plausible (95%)", "n"), rows=rates)


def _shown(value: float | None, form: Form) -> str:
    if value is None:
        return "none"
    return percent(value) if form == "rate" else f"{value:,.10g}"


def _measured(moments: Sequence[Moment]) -> list[tuple[int, Moment, float]]:
    return [(i, moment, moment.value) for i, moment in enumerate(moments) if moment.value is not None]


def _conclusion(moments: Sequence[Moment], form: Form) -> str:
    measured = _measured(moments)
    if not measured:
        return UNMEASURED
    (_, first, start), (_, last, end) = measured[0], measured[-1]
    rests = "" if last.n is None else f", n = {last.n:,}"
    rests += f", {span(last.interval)} is plausible" if last.interval else ""
    if len(measured) == 1:
        return f"{last.label}: {_shown(end, form)}{rests}."
    trend = "Unchanged" if end == start else "Up" if end > start else "Down"
    return (
        f"{trend} from {_shown(start, form)} ({first.label}) to {_shown(end, form)} ({last.label}){rests}; "
        f"{len(measured)} of {len(moments)} periods measured."
    )


def _spark(moments: Sequence[Moment], form: Form) -> Drawing:
    measured = _measured(moments)
    last = _shown(measured[-1][2], form)
    room = WIDTH - width_of(last) * 1.2 - 12
    tops = [m.interval.high if m.interval else value for _, m, value in measured]
    y = Linear(top=round_top(tops, most=1.0) if form == "rate" else round_top(tops), start=HEIGHT - 4, end=5)
    step = (room - 8) / max(1, len(moments) - 1)
    parts = [line(0, y(0), room, y(0), "grid")]
    for run in _runs(moments):
        parts += _run([(4 + i * step, moment, value) for i, moment, value in run], y)
    place, _, value = measured[-1]
    parts.append(circle(4 + place * step, y(value), 3.5, "point lesson"))
    parts.append(text(WIDTH, HEIGHT / 2 + 5, last, "strong", "end"))
    return Drawing(height=HEIGHT, body=join(parts))


def _runs(moments: Sequence[Moment]) -> list[list[tuple[int, Moment, float]]]:
    """Measured periods that follow each other."""
    runs: list[list[tuple[int, Moment, float]]] = []
    before = -2
    for i, moment, value in _measured(moments):
        if i != before + 1:
            runs.append([])
        runs[-1].append((i, moment, value))
        before = i
    return runs


def _run(run: Sequence[tuple[float, Moment, float]], y: Linear) -> list[SafeString]:
    bands = [(x, m.interval) for x, m, _ in run if m.interval]
    lows, highs = [(x, y(i.low)) for x, i in bands], [(x, y(i.high)) for x, i in reversed(bands)]
    if len(run) == 1:
        x, _, value = run[0]
        bars = [line(x, lows[0][1], x, highs[0][1], "whisker lesson")] if bands else []
        return [*bars, circle(x, y(value), 2, "point lesson")]
    band = [polygon([*lows, *highs], "band")] if len(bands) > 1 else []
    return [*band, polyline([(x, y(value)) for x, _, value in run], "line lesson")]
