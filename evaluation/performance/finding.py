"""One line of the report."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evaluation.performance.timing import Estimate, Floats, median_ms, ratio

Unit = Literal["x", "ms", "share", "per second", "MB", "count"]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How good is good enough."""

    limit: float
    at_least: bool = False  # else at most

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def used(self, value: float) -> float:
        """How much of what the bar allows is used up: above 1 it is missed."""
        over, under = (self.limit, value) if self.at_least else (value, self.limit)
        if under:
            return over / under
        return math.inf if over else 0.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was measured at one size of store, and what it should be."""

    key: str  # stable name; up to its first dot it names the bar of `bars.py` that it is about
    lessons: int
    what: str
    result: Estimate
    unit: Unit  # of the result
    floor: str = ""  # what it is compared with
    floor_ms: float | None = None
    ours_ms: float | None = None
    bar: Bar | None = None  # None: told, not judged

    @property
    def about(self) -> str:
        """The name of its bar."""
        return self.key.partition(".")[0]

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.bar.met(self.result.value)


def from_json(told: Mapping[str, Any]) -> Finding:
    """The finding that `dataclasses.asdict` told; `KeyError` or `TypeError` if it is none."""
    bar = told["bar"]
    return Finding(**{**told, "result": Estimate(**told["result"]), "bar": None if bar is None else Bar(**bar)})


def plain(lessons: int, key: str, what: str, value: float, unit: Unit, bar: Bar | None = None) -> Finding:
    """A number that is exact or was measured once."""
    exact = Estimate(value=value, low=value, high=value)
    return Finding(key=key, lessons=lessons, what=what, result=exact, unit=unit, bar=bar)


def compared(
    lessons: int, key: str, what: str, *, ours: Floats, floor: Floats, against: str, at_most: float | None = None
) -> Finding:
    """Our seconds as a multiple of the floor's."""
    return Finding(
        key=key,
        lessons=lessons,
        what=what,
        result=ratio(ours, floor),
        unit="x",
        floor=against,
        floor_ms=median_ms(floor).value,
        ours_ms=median_ms(ours).value,
        bar=None if at_most is None else Bar(limit=at_most),
    )
