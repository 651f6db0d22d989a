"""Whether predicted probabilities come true."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from memory.rules.description import percent, span
from memory.rules.health import Interval, wilson
from review.charts.drawing import MEDIUM, Drawing, Table, circle, fit, join, line, nothing, responsive, text
from review.charts.scales import Linear, rate_axis

#: A bin with fewer cases is drawn hollow: its interval spans half the chart.
FEW: Final = 10
NO_CASES: Final = "No cases to compare yet."
LEFT: Final = 40.0  # px, for the labels of the upright axis


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Cases whose predictions lie close together."""

    predicted: float  # mean prediction, in [0, 1]
    hits: int  # cases in which it happened
    n: int  # cases

    @property
    def observed(self) -> float:
        """Share in which it happened. Raises ZeroDivisionError for an empty bin, which no chart shows."""
        return self.hits / self.n

    @property
    def interval(self) -> Interval:
        return wilson(self.hits, self.n)


def binned(cases: Iterable[tuple[float, bool]], bins: int = 10) -> list[Bin]:
    """Cases, each a prediction and whether it happened, in bins of equal width; empty bins are absent.

    Raises ValueError unless 5 <= bins <= 10, and for a prediction outside [0, 1].
    """
    if not 5 <= bins <= 10:
        raise ValueError(f"A reliability diagram has 5 to 10 bins, not {bins}.")
    groups: dict[int, list[tuple[float, bool]]] = {}
    for predicted, happened in cases:
        if not 0 <= predicted <= 1:
            raise ValueError(f"A prediction lies between 0 and 1, not at {predicted}.")
        groups.setdefault(min(bins - 1, int(predicted * bins)), []).append((predicted, happened))
    return [
        Bin(predicted=sum(p for p, _ in group) / len(group), hits=sum(hit for _, hit in group), n=len(group))
        for _, group in sorted(groups.items())
    ]


def reliability(
    prefix: str, bins: Sequence[Bin], *, title: str, predicted: str = "Predicted", observed: str = "Happened"
) -> SafeString:
    """Observed against predicted, with the diagonal on which both agree.

    Source: Murphy and Winkler, Reliability of subjective probability forecasts of precipitation and temperature,
    Applied Statistics 26 (1977).
    """
    shown = [b for b in bins if b.n]
    return responsive(
        prefix,
        kind="chart-reliability",
        title=title,
        conclusion=_conclusion(shown),
        draw=lambda width: _diagram(shown, width, predicted, observed) if shown else nothing(NO_CASES),
        wide=MEDIUM,
    )


def reliability_table(
    bins: Sequence[Bin], *, title: str, predicted: str = "Predicted", observed: str = "Happened"
) -> Table:
    rows = tuple(
        (
            percent(b.predicted),
            percent(b.observed),
            span(b.interval),
            f"{b.hits:,}",
            f"{b.n:,}",
            "few" if _few(b) else "",
        )
        for b in bins
        if b.n
    )
    header = (predicted, observed, "Plausible (95%)", "Cases in which it did", "Cases", "Note")
    return Table(caption=title, header=header, rows=rows)


def _few(b: Bin) -> bool:
    return b.n < FEW


def _conclusion(bins: Sequence[Bin]) -> str:
    if not bins:
        return NO_CASES
    apart = [b for b in bins if not b.interval.low <= b.predicted <= b.interval.high]
    few = sum(_few(b) for b in bins)
    words = (
        f"In {len(bins) - len(apart)} of {len(bins)} bins the prediction is plausible, n = {sum(b.n for b in bins):,}."
    )
    words += f" {few} of them {'has' if few == 1 else 'have'} fewer than {FEW} cases." if few else ""
    off = (f" Predicted {percent(b.predicted)}, happened {percent(b.observed)} (n = {b.n:,})." for b in apart)
    return words + "".join(off)


def _diagram(bins: Sequence[Bin], width: float, predicted: str, observed: str) -> Drawing:
    side = width - LEFT - 8
    x, y = Linear(top=1, start=LEFT, end=LEFT + side), Linear(top=1, start=26 + side, end=26)
    parts = [text(0, 13, fit(observed, width), "muted"), rate_axis(x, y(0), above=y(1)), *_upright(y, x)]
    parts.append(line(x(0), y(0), x(1), y(1), "base diagonal"))
    parts += [_bin(b, x(b.predicted), y) for b in bins]
    parts += _counts(bins, x, y(0) + 36)
    parts.append(text(x(1), y(0) + 70, fit(predicted, side - 90), "muted", "end"))
    if any(_few(b) for b in bins):
        parts += [circle(7, y(0) + 66, 4.5, "point lesson hollow"), text(18, y(0) + 70, f"under {FEW} cases", "muted")]
    return Drawing(height=26 + side + 76, body=join(parts))


def _upright(y: Linear, x: Linear) -> list[SafeString]:
    parts = [line(x(0), y(0), x(0), y(1), "axis")]
    for tick in y.ticks[1:]:
        parts += [line(x(0), y(tick), x(1), y(tick), "grid")]
        parts += [text(LEFT - 4, y(tick) + 4, f"{100 * tick:.0f}%", "muted", "end")]
    return parts


def _bin(b: Bin, x: float, y: Linear) -> SafeString:
    low, high = y(b.interval.low), y(b.interval.high)
    css = "point lesson hollow" if _few(b) else "point lesson"
    parts = [line(x, low, x, high, "whisker lesson")]
    parts += [line(x - 4, end, x + 4, end, "whisker lesson") for end in (low, high)]
    return join([*parts, circle(x, y(b.observed), 4.5, css)])


def _counts(bins: Sequence[Bin], x: Linear, y: float) -> list[SafeString]:
    """How many cases each bin has, under it; on two lines in turn, because ten of them are close together."""
    parts = [text(4, y, "n", "muted")]
    for i, b in enumerate(bins):
        parts.append(text(x(b.predicted), y + 14 * (i % 2), _short(b.n), "muted", "middle"))
    return parts


def _short(n: int) -> str:
    """`7`, `940`, `1.2k`, `3.4M`."""
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if n >= size:
            return f"{n / size:.1f}{unit}" if n < 10 * size else f"{n / size:,.0f}{unit}"
    return str(n)
