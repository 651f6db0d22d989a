"""Bars of named parts: what a score is made of, and how often two lessons were served together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from memory.rules.description import percent
from review.charts.drawing import (
    MEDIUM,
    Drawing,
    Table,
    counted,
    finite,
    fit,
    join,
    line,
    nothing,
    rect,
    responsive,
    text,
)

BAR: Final = 20.0  # px
LINE: Final = 20.0  # px
NO_PARTS: Final = "The score has no parts."
NEITHER: Final = "Neither was served yet."
COLOURS: Final = 4  # parts beyond them begin again; their order and their names tell them apart


@dataclass(frozen=True, kw_only=True)
class Part:
    """A named part of a score."""

    name: str
    value: float  # finite; below 0 it lowers the score

    def __post_init__(self) -> None:
        finite(self.value)


def score_bar(
    prefix: str, parts: Sequence[Part], *, title: str, top: float | None = None, digits: int = 4
) -> SafeString:
    """What adds up to a score. `top` ends the axis, so that several results share one; else the bar fills it."""
    return responsive(
        prefix,
        kind="chart-score",
        title=title,
        conclusion=_score_words(parts, digits),
        draw=lambda width: _score(parts, width, top, digits) if parts else nothing(NO_PARTS),
        wide=MEDIUM,
    )


def score_table(parts: Sequence[Part], *, title: str, digits: int = 4) -> Table:
    rows = [(part.name, _value(part.value, digits)) for part in parts]
    rows.append(("Score", _value(_total(parts), digits)))
    return Table(caption=title, header=("Part", "Value"), rows=tuple(rows))


def _total(parts: Sequence[Part]) -> float:
    return math.fsum(part.value for part in parts)


def _value(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "\u2212")


def _score_words(parts: Sequence[Part], digits: int) -> str:
    if not parts:
        return NO_PARTS
    named = ", ".join(f"{part.name} {_value(part.value, digits)}" for part in parts)
    return f"Score {_value(_total(parts), digits)} of {counted(len(parts), 'part')}: {named}."


def _score(parts: Sequence[Part], width: float, top: float | None, digits: int) -> Drawing:
    above = math.fsum(max(0.0, part.value) for part in parts)
    below = math.fsum(max(0.0, -part.value) for part in parts)
    length = max(above, top or 0.0) + below or 1.0
    zero = width * below / length
    shapes = [text(0, 13, "Score", "muted"), text(width, 13, _value(_total(parts), digits), "strong", "end")]
    right, left = zero, zero
    for i, part in enumerate(parts):
        size = width * abs(part.value) / length
        if part.value < 0:
            left -= size
        shapes.append(_segment(left if part.value < 0 else right, 22, size, f"part-{i % COLOURS + 1}"))
        if part.value >= 0:
            right += size
    shapes.append(line(zero, 20, zero, 24 + BAR, "axis"))
    values = [_value(part.value, digits) for part in parts]
    shapes += _legend([part.name for part in parts], values, width, 22 + BAR)
    return Drawing(height=28 + BAR + LINE * len(parts), body=join(shapes))


def _segment(x: float, y: float, size: float, css: str) -> SafeString:
    """With a gap to the next one, so that neighbours never depend on their colours; what is not 0 can be seen."""
    return rect(x, y, max(1.0, size - 2) if size > 0 else 0, BAR, css)


def _legend(
    names: Sequence[str], values: Sequence[str], width: float, y: float, css: Sequence[str] | None = None
) -> list[SafeString]:
    shapes: list[SafeString] = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        base = y + LINE * (i + 1)
        shapes.append(rect(0, base - 10, 11, 11, css[i] if css else f"part-{i % COLOURS + 1}"))
        shapes.append(text(18, base, fit(name, width - 120)))
        shapes.append(text(width, base, value, "", "end"))
    return shapes


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How often two lessons were served, alone and together."""

    only_a: int  # servings of A without B
    both: int  # servings of both in one interaction
    only_b: int  # servings of B without A
    a: str = "A"  # what A is called
    b: str = "B"

    @property
    def n(self) -> int:
        return self.only_a + self.both + self.only_b

    @property
    def named(self) -> tuple[tuple[str, int, str], ...]:
        return (
            (f"only {self.a}", self.only_a, "only-a"),
            ("both", self.both, "both"),
            (f"only {self.b}", self.only_b, "only-b"),
        )


def overlap_bar(prefix: str, overlap: Overlap, *, title: str) -> SafeString:
    return responsive(
        prefix,
        kind="chart-overlap",
        title=title,
        conclusion=_overlap_words(overlap),
        draw=lambda width: _overlap(overlap, width) if overlap.n else nothing(NEITHER),
        wide=MEDIUM,
    )


def overlap_table(overlap: Overlap, *, title: str) -> Table:
    rows = tuple((name, f"{n:,}", _share(n, overlap.n)) for name, n, _ in overlap.named)
    return Table(caption=title, header=("Served", "Interactions", "Share"), rows=rows)


def _share(n: int, total: int) -> str:
    return percent(n / total) if total else "none yet"


def _overlap_words(overlap: Overlap) -> str:
    if not overlap.n:
        return NEITHER
    named = ", ".join(f"{name} {n:,}" for name, n, _ in overlap.named)
    return f"Served together in {overlap.both:,} of {counted(overlap.n, 'interaction')}: {named}."


def _overlap(overlap: Overlap, width: float) -> Drawing:
    total = f"{overlap.n:,}"
    shapes = [text(0, 13, "Interactions with either", "muted"), text(width, 13, total, "strong", "end")]
    x = 0.0
    for _, n, css in overlap.named:
        size = width * n / overlap.n
        shapes.append(_segment(x, 22, size, css))
        x += size
    names, fills = [name for name, _, _ in overlap.named], [fill for _, _, fill in overlap.named]
    values = [f"{n:,} \u00b7 {_share(n, overlap.n)}" for _, n, _ in overlap.named]
    shapes += _legend(names, values, width, 22 + BAR, fills)
    return Drawing(height=28 + BAR + 3 * LINE, body=join(shapes))
