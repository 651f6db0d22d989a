"""Events that come so close together that one cause is likelier than many."""

from collections.abc import Sequence


def bursts(moments: Sequence[float], *, more_than: int, within: float) -> list[range]:
    """The stretches of a rising sequence in which more than so many events lie within so many seconds.

    `moments` are seconds, sorted. The answer holds ranges of positions that do not overlap; overlapping stretches are
    one. Raises ValueError if the moments fall.
    """
    found: list[range] = []
    first = 0
    for last, moment in enumerate(moments):
        if last and moment < moments[last - 1]:
            raise ValueError("The moments must be sorted.")
        while moment - moments[first] > within:
            first += 1
        if last - first + 1 > more_than:
            start = min(first, found.pop().start) if found and found[-1].stop > first else first
            found.append(range(start, last + 1))
    return found
