"""A lesson's life as a strip: what was won and lost when, versions, quarantine and probation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from django.utils.safestring import SafeString

from review.charts.drawing import (
    WIDE,
    Drawing,
    Table,
    counted,
    fit,
    join,
    line,
    nothing,
    polygon,
    rect,
    responsive,
    text,
    width_of,
)

SpanKind = Literal["quarantine", "probation"]

COLUMN: Final = 4.0  # px: servings that are closer than this share a tick, which grows with their number
LABEL: Final = 80.0  # px, at most, for the label of a mark
TALLEST: Final = 24.0  # px
LANES: Final[dict[SpanKind, float]] = {"quarantine": 24.0, "probation": 32.0}  # px from above
NOTHING: Final = "Nothing has happened to it yet."
SPAN_WORDS: Final[dict[SpanKind, str]] = {"quarantine": "Quarantined", "probation": "On probation"}


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A judged serving."""

    at: datetime  # when it was handed out
    lost: bool  # a loss; else a win


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something that happened at one moment."""

    at: datetime
    label: str  # short, for instance "v2"


@dataclass(frozen=True, kw_only=True)
class Span:
    """Something that lasted."""

    kind: SpanKind
    start: datetime
    end: datetime | None = None  # None: it still lasts


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """All that the strip shows. Moments share a time zone, which is the one that is printed."""

    servings: Sequence[Serving]
    until: datetime  # where the strip ends, usually now
    marks: Sequence[Mark] = ()
    spans: Sequence[Span] = ()

    @property
    def start(self) -> datetime:
        """The first moment of all; an hour before the end where there is none before it."""
        moments = [
            *(serving.at for serving in self.servings),
            *(mark.at for mark in self.marks),
            *(span.start for span in self.spans),
        ]
        first = min(moments, default=self.until)
        return first if first < self.until else self.until - timedelta(hours=1)

    @property
    def any(self) -> bool:
        return bool(self.servings or self.marks or self.spans)

    @property
    def losses(self) -> int:
        return sum(serving.lost for serving in self.servings)


def timeline(prefix: str, shown: Timeline, *, title: str) -> SafeString:
    return responsive(
        prefix,
        kind="chart-timeline",
        title=title,
        conclusion=_conclusion(shown),
        draw=lambda width: _strip(shown, width) if shown.any else nothing(NOTHING),
    )


def timeline_table(shown: Timeline, *, title: str) -> Table:
    """Everything in order of time; a span is a row at its start."""
    rows = [
        *((serving.at, "Loss" if serving.lost else "Win", "") for serving in shown.servings),
        *((mark.at, mark.label, "") for mark in shown.marks),
        *((span.start, SPAN_WORDS[span.kind], _moment(span.end) if span.end else "now") for span in shown.spans),
    ]
    ordered = sorted(rows, key=lambda row: row[0])
    cells = tuple((_moment(at), what, until) for at, what, until in ordered)
    return Table(caption=title, header=("When", "What", "Until"), rows=cells)


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _conclusion(shown: Timeline) -> str:
    if not shown.any:
        return NOTHING
    n = len(shown.servings)
    served = f"{counted(n, 'judged serving')}, {counted(shown.losses, 'loss', 'losses')}" if n else "No judged servings"
    spans = "".join(
        f" {SPAN_WORDS[span.kind]} from {_moment(span.start)} {'to ' + _moment(span.end) if span.end else 'until now'}."
        for span in shown.spans
    )
    marks = "".join(f" {mark.label}: {_moment(mark.at)}." for mark in shown.marks)
    return f"{served}, from {_moment(shown.start)} to {_moment(shown.until)}.{spans}{marks}"


def _strip(shown: Timeline, width: float) -> Drawing:
    start, length = shown.start, (shown.until - shown.start).total_seconds()

    def x(at: datetime) -> float:
        return 4 + (width - 8) * min(1.0, max(0.0, (at - start).total_seconds() / length))

    middle = LANES["probation"] + 8 + TALLEST
    parts = [
        *(_span(span.kind, x(span.start), x(span.end or shown.until), middle) for span in shown.spans),
        *_marks([(x(mark.at), mark.label) for mark in shown.marks], width, middle),
        line(4, middle, width - 4, middle, "axis"),
        *_ticks([(x(serving.at), serving.lost) for serving in shown.servings], width, middle),
        *_dates(shown, width, middle + TALLEST + 18),
        *_key(shown, width, middle + TALLEST + 40),
    ]
    return Drawing(height=middle + TALLEST + (46 if width >= WIDE else 64), body=join(parts))


def _span(kind: SpanKind, x1: float, x2: float, middle: float) -> SafeString:
    """A bar in the lane of its kind, and under quarantine a tint behind the ticks."""
    x2 = max(x2, x1 + 2)
    bar = line(x1, LANES[kind], x2, LANES[kind], f"span-{kind}")
    if kind == "probation":
        return bar
    return join([rect(x1, LANES[kind], x2 - x1, middle + TALLEST + 4 - LANES[kind], f"tint-{kind}"), bar])


def _marks(marks: Sequence[tuple[float, str]], width: float, middle: float) -> list[SafeString]:
    """A line at each; its flag and label where there is room after the one before, to the left at the end."""
    parts: list[SafeString] = []
    free = 0.0
    for x, label in sorted(marks):
        parts.append(line(x, 8, x, middle + TALLEST + 4, "mark"))
        words = fit(label, LABEL)
        size = 10 + width_of(words)
        way = 1 if x + size <= width else -1
        if min(x, x + way * size) >= free:
            parts.append(polygon([(x, 4), (x + way * 7, 8), (x, 12)], "flag"))
            parts.append(text(x + way * 10, 12.5, words, "muted", "start" if way > 0 else "end"))
            free = max(x, x + way * size) + 3
    return parts


def _ticks(servings: Sequence[tuple[float, bool]], width: float, middle: float) -> list[SafeString]:
    """Wins up, losses down. Only where some share a column do heights differ, and then they are in proportion."""
    columns = Counter((int(x / COLUMN), lost) for x, lost in servings)
    most = max(columns.values(), default=1)
    parts = []
    if most > 1:
        parts.append(text(width, middle + TALLEST + 40, f"tallest: {most:,}", "muted", "end"))
    for (column, lost), n in sorted(columns.items()):
        x = (column + 0.5) * COLUMN
        height = max(3.0, TALLEST * n / most) if most > 1 else TALLEST * 0.7
        end = middle + 1.5 + height if lost else middle - 1.5 - height
        parts.append(line(x, middle + (1.5 if lost else -1.5), x, end, f"tick {'loss' if lost else 'win'}"))
    return parts


def _dates(shown: Timeline, width: float, y: float) -> list[SafeString]:
    start, end = shown.start, shown.until
    if start.date() == end.date():
        return [text(0, y, f"{start:%H:%M}", "muted"), text(width, y, f"{end:%H:%M}", "muted", "end")]
    year = "" if start.year == end.year else f" {start.year}"
    last = f"{end.day} {end:%b} {end.year}"
    return [text(0, y, f"{start.day} {start:%b}{year}", "muted"), text(width, y, last, "muted", "end")]


def _key(shown: Timeline, width: float, y: float) -> list[SafeString]:
    """What the marks mean, with their numbers; in the narrow form the spans come under the ticks."""
    wins, losses = counted(len(shown.servings) - shown.losses, "win"), counted(shown.losses, "loss", "losses")
    x = 10 + width_of(wins) + 14
    parts = [line(3, y - 10, 3, y + 1, "tick win"), text(10, y, wins, "muted")]
    parts += [line(x, y - 10, x, y + 1, "tick loss"), text(x + 7, y, losses, "muted")]
    x, y = (x + 7 + width_of(losses) + 14, y) if width >= WIDE else (0.0, y + 19)
    for kind, words in SPAN_WORDS.items():
        if any(span.kind == kind for span in shown.spans):
            parts += [line(x, y - 4, x + 18, y - 4, f"span-{kind}"), text(x + 24, y, words.lower(), "muted")]
            x += 24 + width_of(words) + 12
    return parts
