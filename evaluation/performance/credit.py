"""What one outcome costs, and whether that depends on how much was recorded before."""

from typing import Final
from uuid import UUID

from evaluation.performance.bench import Bench
from evaluation.performance.finding import Finding, compared
from evaluation.performance.load import handed_out
from evaluation.performance.store import Shape, connect
from evaluation.performance.timing import Side, in_turns
from memory.models.sql import execute
from memory.services.credit import credit

SMALL: Final = Shape(lessons=2_000, vectors=False)
LARGE: Final = Shape(lessons=200_000, vectors=False)
HUGE: Final = Shape(lessons=1_000_000, servings=10, vectors=False)


def growth(bench: Bench) -> list[Finding]:
    """One outcome credited and its five lessons judged, in a store of few usage rows and in one of many.

    The transaction does not wait for the disk: that wait is the same in both, and would hide a difference.
    """
    waiting: dict[str, UUID] = {}

    def side(shape: Shape) -> Side:
        def prepare(i: int) -> None:
            connect(shape.database)
            execute("SET synchronous_commit = off")
            waiting[shape.database] = handed_out(i, shape.lessons)

        return Side(act=lambda _: credit(waiting[shape.database]), before=prepare)

    large = bench.shape
    taken = in_turns({"small": side(SMALL), "large": side(large)})
    return [
        compared(
            large.lessons,
            "credit.growth",
            f"one outcome credited and its five lessons judged, at {large.usage_rows:,} usage rows",
            ours=taken["large"],
            floor=taken["small"],
            against=f"the same at {SMALL.usage_rows:,} usage rows",
            at_most=2,
        )
    ]
