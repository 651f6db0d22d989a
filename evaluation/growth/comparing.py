"""Costs of the same things in stores of different sizes, beside each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

GROWN: Final = 2.0  # what takes so many times as long has grown
NOTICED_SECONDS: Final = 0.02  # and is at least so much longer

Costs = Mapping[str, Mapping[str, Any]]  # fields of evaluation.growth.costs.Cost, by page or job


def usual(cost: Mapping[str, Any]) -> float:
    """Seconds of a look, or of a job that finds nothing new."""
    return float(cost["seconds"] if cost["again"] is None else cost["again"])


def grown(few: Costs, many: Costs) -> list[str]:
    """Pages and jobs that take GROWN times as long in the second store, and NOTICED_SECONDS longer."""
    before, after = ({name: usual(costs[name]) for name in many} for costs in (few, many))
    return [name for name in many if after[name] > max(GROWN * before[name], before[name] + NOTICED_SECONDS)]


def power(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The power of the size that a value grows with, from the second largest store to the largest; 0 without two."""
    if len(sizes) < 2 or min(values[-2:]) <= 0:
        return 0.0
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def sums(table: Mapping[str, Any]) -> dict[str, float]:
    """Bytes of a table with its long values, and of its indexes, from what `evaluation.growth.sizing` tells of it."""
    indexes = sum(table.get("indexes", {}).values())
    return {"table": float(table.get("own", 0) + table.get("long", 0)), "indexes": float(indexes)}
