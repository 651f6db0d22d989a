"""How long and how large a measurement is: environment variables, each within bounds."""

import os
from dataclasses import dataclass
from typing import Final

from memory.errors import Invalid


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A whole number that may be chosen."""

    usual: int
    low: int
    high: int
    meaning: str  # with its unit


NUMBERS: Final = {
    "LOAD_SECONDS": Bound(usual=20, low=2, high=600, meaning="seconds of each number of agents"),
    "SOAK_MINUTES": Bound(usual=30, low=2, high=24 * 60, meaning="minutes of the soak"),
    "GROWTH_LESSONS": Bound(usual=10_000, low=1_000, high=1_000_000, meaning="lessons of the store that agents use"),
    "GROWTH_ACCOUNTS": Bound(usual=5_000, low=64, high=50_000, meaning="accounts of the store that has many"),
    "LOOPS": Bound(usual=1_500, low=100, high=1_000_000, meaning="loops of work whose rows are counted"),
    "STARTS": Bound(usual=5, low=1, high=50, meaning="starts on a set-up store"),
    "FIRST_STARTS": Bound(usual=3, low=1, high=50, meaning="starts in an empty folder"),
}
LISTS: Final = {
    "LOAD_AGENTS": ((1, 2, 4, 8, 16, 32, 64), 1, 256, "agents at once, one step after the other"),
    "GROWTH_SIZES": ((1_000, 10_000, 100_000), 1_000, 2_000_000, "lessons of the stores whose growth is measured"),
}


def number(name: str) -> int:
    """A variable of NUMBERS. Raises Invalid for what is no number or out of bounds."""
    bound = NUMBERS[name]
    return _checked(name, os.environ.get(name, str(bound.usual)), bound.low, bound.high)


def numbers(name: str) -> tuple[int, ...]:
    """A variable of LISTS: numbers with commas between them, in ascending order. Raises Invalid likewise."""
    usual, low, high, _ = LISTS[name]
    said = os.environ.get(name)
    return usual if said is None else tuple(sorted({_checked(name, each, low, high) for each in said.split(",")}))


def _checked(name: str, said: str, low: int, high: int) -> int:
    if not said.strip().isdecimal() or not low <= int(said) <= high:
        raise Invalid.field(name, f"use whole numbers from {low:,} to {high:,}.")
    return int(said)
