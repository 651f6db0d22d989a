"""What every chart is made of: shapes, text that fits, the frame that names it, and the table beside it.

A chart is inline SVG without a style or a script: how it looks is a matter of classes (static/review/charts.css), so
that it follows the theme and a strict Content-Security-Policy. All text in it is escaped, at least 12 px high, and
within the width that is estimated for it.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

#: Widths of the forms of a chart, in px. The narrow one fits a card on a screen of 360 px without being scaled down;
#: the other is shown from a container of its own width on, so that no text is ever below 12 px. The stylesheet knows
#: these two widths.
NARROW: Final = 288
MEDIUM: Final = 480
WIDE: Final = 640

Anchor = Literal["start", "middle", "end"]

_PREFIX: Final = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_CONTROL: Final = re.compile(r"\s+")
#: Joiner and variation selector of emoji: unprintable, and still part of what is seen.
_KEPT: Final = "\u200d\ufe0f"


@dataclass(frozen=True, kw_only=True)
class Table:
    """The numbers of a chart, for "Show as table". Plain text: the template escapes it."""

    caption: str  # what the chart is called
    header: tuple[str, ...]  # one word for each column
    rows: tuple[tuple[str, ...], ...]  # as many cells as the header has; the first names the row


def coordinate(value: float) -> str:
    """A length in px with at most two decimals."""
    return f"{round(finite(value), 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # adding zero makes -0 a 0


def finite(value: float) -> float:
    """The value. Raises ValueError if it is no finite number: a chart never hides that."""
    if not math.isfinite(value):
        raise ValueError(f"A chart cannot show {value}.")
    return value


def join(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> SafeString:
    ends = [coordinate(value) for value in (x1, y1, x2, y2)]
    return format_html('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>', *ends, css)


def rect(x: float, y: float, width: float, height: float, css: str) -> SafeString:
    sides = [coordinate(value) for value in (x, y, max(0.0, width), height)]
    return format_html('<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>', *sides, css)


def circle(x: float, y: float, radius: float, css: str) -> SafeString:
    return format_html(
        '<circle cx="{}" cy="{}" r="{}" class="{}"/>', coordinate(x), coordinate(y), coordinate(radius), css
    )


def polygon(points: Sequence[tuple[float, float]], css: str) -> SafeString:
    return format_html('<polygon points="{}" class="{}"/>', _points(points), css)


def polyline(points: Sequence[tuple[float, float]], css: str) -> SafeString:
    return format_html('<polyline points="{}" class="{}"/>', _points(points), css)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)


def text(x: float, y: float, words: str, css: str = "", anchor: Anchor = "start") -> SafeString:
    """One line of text whose base line is at `y`."""
    return format_html(
        '<text x="{}" y="{}" text-anchor="{}" class="{}">{}</text>',
        coordinate(x),
        coordinate(y),
        anchor,
        css,
        legible(words),
    )


def legible(words: str) -> str:
    """On one line, without characters that XML forbids or that reorder what stands around them."""
    spaced = _CONTROL.sub(" ", words)
    return "".join(c for c in spaced if c.isprintable() or c in _KEPT)


def counted(n: int, one: str, many: str | None = None) -> str:
    """`1 loss`, `2,384 losses`; the plural adds an s unless it is given."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def width_of(words: str) -> float:
    """About how wide a line of text is, in px at 12 px: rather too much than too little."""
    return sum(_advance(c) for c in words)


def _advance(c: str) -> float:
    if unicodedata.combining(c) or c in _KEPT:
        return 0.0
    if unicodedata.east_asian_width(c) in "WF":
        return 13.0
    if c in "iljt.,:;'|!()[] ":
        return 4.5
    return 9.5 if c.isupper() or c in "mw%@" else 7.3


def fit(words: str, width: float) -> str:
    """The words, cut with an ellipsis where they would be wider than `width` px."""
    words = legible(words)
    if width_of(words) <= width:
        return words
    used, kept = width_of("\u2026"), 0
    for c in words:
        used += _advance(c)
        if used > width:
            break
        kept += 1
    return words[:kept].rstrip() + "\u2026"


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One form of a chart: what is in the frame."""

    height: float  # px
    body: SafeString  # the shapes


def nothing(words: str) -> Drawing:
    """A chart without data is a sentence, not empty axes."""
    return Drawing(height=24, body=text(0, 16, words, "muted"))


def framed(prefix: str, *, kind: str, title: str, conclusion: str, width: float, drawing: Drawing) -> SafeString:
    """The SVG with its name and its conclusion, which is all that a screen reader reads."""
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} cannot start an id: it takes a letter, then letters, digits, - and _.")
    size = coordinate(width), coordinate(drawing.height)
    return format_html(
        '<svg class="chart {}" role="img" aria-labelledby="{}-title {}-desc" width="{}" height="{}" '
        'viewBox="0 0 {} {}"><title id="{}-title">{}</title><desc id="{}-desc">{}</desc>{}</svg>',
        kind, prefix, prefix, *size, *size, prefix, legible(title), prefix, legible(conclusion), drawing.body,
    )  # fmt: skip


def responsive(
    prefix: str, *, kind: str, title: str, conclusion: str, draw: Callable[[float], Drawing], wide: int = WIDE
) -> SafeString:
    """A narrow and a wide form, of which the stylesheet shows the one that fits the container."""
    forms = (("n", f"chart-below-{wide:.0f}", NARROW), ("w", f"chart-from-{wide:.0f}", wide))
    return format_html(
        '<div class="chart-box">{}{}</div>',
        *(
            framed(
                f"{prefix}-{letter}",
                kind=f"{kind} {css}",
                title=title,
                conclusion=conclusion,
                width=width,
                drawing=draw(width),
            )
            for letter, css, width in forms
        ),
    )
