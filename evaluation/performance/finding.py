"""One line of the report."""

from dataclasses import dataclass
from typing import Literal

from evaluation.performance.timing import Estimate, Floats, median_ms, ratio


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How good is good enough."""

    limit: float
    at_least: bool = False  # else at most

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was measured at one size of store, and what it should be."""

    lessons: int
    what: str
    result: Estimate
    unit: Literal["x", "ms", "share", "per second"]  # of the result
    floor: str = ""  # what it is compared with
    floor_ms: float | None = None
    ours_ms: float | None = None
    bar: Bar | None = None  # None: told, not judged

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.bar.met(self.result.value)


def compared(
    lessons: int, what: str, *, ours: Floats, floor: Floats, against: str, at_most: float | None = None
) -> Finding:
    """Our seconds as a multiple of the floor's."""
    return Finding(
        lessons=lessons,
        what=what,
        result=ratio(ours, floor),
        unit="x",
        floor=against,
        floor_ms=median_ms(floor).value,
        ours_ms=median_ms(ours).value,
        bar=None if at_most is None else Bar(limit=at_most),
    )
