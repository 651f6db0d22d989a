"""Loss rates with what is plausible around them: one row, a row for a table, and the forest plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.safestring import SafeString

from memory.rules.description import percent, span
from memory.rules.health import Interval, wilson
from review.charts.drawing import (
    MEDIUM,
    WIDE,
    Drawing,
    Table,
    circle,
    fit,
    framed,
    join,
    line,
    nothing,
    polygon,
    responsive,
    text,
    width_of,
)
from review.charts.scales import Linear, rate_axis, round_top

Series = Literal["lesson", "second"]

COUNTS, PLAUSIBLE = "lost / n", "plausible"
NO_ROWS = "No servings to compare yet."
HEADER = ("", "Lost", "Servings", "Loss rate", "Plausible (95%)", "Expected")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How often something was lost: a row of a chart."""

    label: str  # what was counted, for instance "With it" or "Project billing"
    losses: int  # lost servings
    n: int  # judged servings, >= losses
    expected: float | None = None  # loss rate to be expected, in [0, 1]; None if nobody knows
    series: Series = "lesson"  # with the lesson, or the second series: without it

    @property
    def rate(self) -> float | None:
        return self.losses / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """Wilson, 95%; all of [0, 1] without servings. Raises ValueError for counts that cannot be."""
        return wilson(self.losses, self.n)

    @property
    def words(self) -> str:
        """`14 of 40 lost, 35%; 22% to 51% is plausible. Expected was 18%, below that.`"""
        if self.rate is None:
            return "No judged servings."
        counted = f"{self.losses:,} of {self.n:,} lost, {percent(self.rate)}; {span(self.interval)} is plausible."
        return counted if self.expected is None else f"{counted} Expected was {percent(self.expected)}, {self._where}."

    @property
    def _where(self) -> str:
        if self.expected is None or self.interval.low <= self.expected <= self.interval.high:
            return "within that"
        return "below that" if self.expected < self.interval.low else "above that"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table under HEADER."""
        rate = "no servings" if self.rate is None else percent(self.rate)
        expected = "unknown" if self.expected is None else percent(self.expected)
        return self.label, f"{self.losses:,}", f"{self.n:,}", rate, span(self.interval), expected


def top_of(estimates: Sequence[Estimate]) -> float:
    """Where an axis ends that holds all of them."""
    ends = [estimate.interval.high for estimate in estimates if estimate.n]
    return round_top([*ends, *(e.expected for e in estimates if e.expected is not None)], most=1.0)


def glyph(estimate: Estimate, scale: Linear, y: float, reach: float = 9) -> SafeString:
    """Interval, expected tick and point at height `y`; without servings a dotted line over everything possible."""
    parts: list[SafeString] = []
    low, high = scale(estimate.interval.low), scale(estimate.interval.high)
    if estimate.rate is None:
        parts.append(line(low, y, high, y, "unknown"))
    else:
        ends = [line(x, y - 4, x, y + 4, f"whisker {estimate.series}") for x in (low, high)]
        parts += [line(low, y, high, y, f"whisker {estimate.series}"), *ends]
    if estimate.expected is not None:
        x = scale(estimate.expected)
        parts.append(line(x, y - reach, x, y + reach, "expected"))
    if estimate.rate is not None:
        parts.append(point(scale(estimate.rate), y, estimate.series))
    return join(parts)


def point(x: float, y: float, series: Series) -> SafeString:
    """A circle for the lesson, a diamond for the second series."""
    if series == "lesson":
        return circle(x, y, 4.5, "point lesson")
    return polygon([(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)], "point second")


def interval_row(prefix: str, estimate: Estimate, *, title: str) -> SafeString:
    """One rate large: the point, what is plausible, and a tick at what was expected."""
    return responsive(
        prefix,
        kind="chart-interval",
        title=title,
        conclusion=estimate.words,
        draw=lambda width: _interval(estimate, width),
        wide=MEDIUM,
    )


def _interval(estimate: Estimate, width: float) -> Drawing:
    scale = Linear(top=top_of([estimate]), start=6, end=width - 6)
    headline = "No judged servings" if estimate.rate is None else f"{percent(estimate.rate)} lost"
    parts = [
        text(0, 13, headline, "strong"),
        text(width, 13, f"n = {estimate.n:,}", "muted", "end"),
        rate_axis(scale, 70),
        glyph(estimate, scale, 50, 14),
    ]
    expected = "" if estimate.expected is None else f"expected {percent(estimate.expected)}"
    if expected:
        parts += expected_key(2, 27, expected)
    if estimate.n:
        plausible = f"{_plausible(estimate)} plausible"
        if width_of(expected) + width_of(plausible) > width - 20:
            plausible = _plausible(estimate)  # the interval itself is drawn, and the description has the word
        parts.append(text(width, 31, plausible, "muted", "end"))
    return Drawing(height=90, body=join(parts))


def expected_key(x: float, y: float, words: str) -> list[SafeString]:
    """What the dashed tick means."""
    return [line(x, y - 7, x, y + 7, "expected"), text(x + 7, y + 4, words, "muted")]


def interval_mini(prefix: str, estimate: Estimate, *, title: str, top: float = 1.0) -> SafeString:
    """The same in a row of a table, which prints the numbers; `top` ends the axis and is one for all rows."""
    width, height = 128, 22
    scale = Linear(top=top, start=4, end=width - 4)
    body = join([line(4, 11, width - 4, 11, "grid"), glyph(estimate, scale, 11)])
    drawing = Drawing(height=height, body=body)
    return framed(prefix, kind="chart-mini", title=title, conclusion=estimate.words, width=width, drawing=drawing)


def interval_table(estimate: Estimate, *, title: str) -> Table:
    return Table(caption=title, header=HEADER, rows=(estimate.cells,))


def forest(prefix: str, estimates: Sequence[Estimate], *, title: str) -> SafeString:
    """A row for each segment on one axis from 0, to compare segments with what was expected and with each other.

    Source: Lewis and Clarke, Forest plots: trying to see the wood and the trees, BMJ 322:1479 (2001).
    """
    return responsive(
        prefix,
        kind="chart-forest",
        title=title,
        conclusion=_conclusion(estimates),
        draw=lambda width: _forest(estimates, width) if estimates else nothing(NO_ROWS),
    )


def forest_table(estimates: Sequence[Estimate], *, title: str) -> Table:
    return Table(caption=title, header=HEADER, rows=tuple(estimate.cells for estimate in estimates))


def _conclusion(estimates: Sequence[Estimate]) -> str:
    if not estimates:
        return NO_ROWS
    rows = " ".join(f"{estimate.label}: {estimate.words}" for estimate in estimates)
    above = sum(e.n > 0 and e.expected is not None and e.interval.low > e.expected for e in estimates)
    return f"{above} of {len(estimates)} rows lost more than expected beyond what is plausible. {rows}"


def _forest(estimates: Sequence[Estimate], width: float) -> Drawing:
    wide = width >= WIDE
    counts, plausible = _columns(estimates)
    start, end, first, row = (176.0, width - counts - plausible - 36, 28, 30) if wide else (6.0, width - 6, 26, 46)
    scale = Linear(top=top_of(estimates), start=start, end=end)
    bottom = first + row * len(estimates)
    parts = [*_key(estimates, scale.start), rate_axis(scale, bottom + 2, above=first)]
    if wide:
        parts += [text(width - plausible - 16, 14, COUNTS, "muted", "end"), text(width, 14, PLAUSIBLE, "muted", "end")]
    for i, estimate in enumerate(estimates):
        y = first + row * i
        parts.append(line(0, y, width, y, "grid"))
        parts += _wide_row(estimate, scale, y, width, plausible) if wide else _narrow_row(estimate, scale, y, width)
    return Drawing(height=bottom + 24, body=join(parts))


def _columns(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Widths of the two columns of numbers."""
    counts = max(width_of(words) for words in (COUNTS, *map(_counted, estimates)))
    return counts, max(width_of(words) for words in (PLAUSIBLE, *map(_plausible, estimates)))


def _counted(estimate: Estimate) -> str:
    return f"{estimate.losses:,} / {estimate.n:,}"


def _plausible(estimate: Estimate) -> str:
    return span(estimate.interval).replace(" to ", "\u2013") if estimate.n else "\u2013"


def _wide_row(estimate: Estimate, scale: Linear, y: float, width: float, plausible: float) -> list[SafeString]:
    return [
        text(0, y + 19, fit(estimate.label, 160)),
        glyph(estimate, scale, y + 15, 10),
        text(width - plausible - 16, y + 19, _counted(estimate), "", "end"),
        text(width, y + 19, _plausible(estimate), "muted", "end"),
    ]


def _narrow_row(estimate: Estimate, scale: Linear, y: float, width: float) -> list[SafeString]:
    counted = _counted(estimate)
    return [
        text(0, y + 16, fit(estimate.label, width - width_of(counted) - 12), "halo"),
        text(width, y + 16, counted, "halo", "end"),
        glyph(estimate, scale, y + 32, 9),
    ]


def _key(estimates: Sequence[Estimate], x: float) -> list[SafeString]:
    """What the marks mean, as far as they occur."""
    parts: list[SafeString] = []
    if any(estimate.series == "second" for estimate in estimates):
        parts += [point(x + 5, 10, "lesson"), text(x + 14, 14, "with it", "muted")]
        parts += [point(x + 71, 10, "second"), text(x + 81, 14, "without it", "muted")]
        x += 152
    if any(estimate.expected is not None for estimate in estimates):
        parts += expected_key(x + 2, 10, "expected")
    return parts
