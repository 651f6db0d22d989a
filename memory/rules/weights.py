"""What each judge's word weighs, read from one line of text."""

from decimal import Decimal, InvalidOperation

from memory.rules.signals import SOURCES


def parse_weights(line: str) -> dict[str, Decimal]:
    """`caller=1,machine=0.7` as a weight in [0, 1] for every source, 0 where none is named.

    Raises ValueError naming the part that is no weight. Weights have at most 3 decimals, as the database keeps them.
    """
    weights = dict.fromkeys(SOURCES, Decimal(0))
    for part in line.split(","):
        source, _, value = part.strip().partition("=")
        try:
            weight = Decimal(value)
        except InvalidOperation:
            weight = Decimal("NaN")
        if source not in weights or not weight.is_finite() or not 0 <= weight <= 1 or weight != round(weight, 3):
            raise ValueError(
                f"{part.strip()!r} is no weight: write source=weight, with a source of {', '.join(SOURCES)} and a "
                "weight from 0 to 1 with at most 3 decimals."
            )
        weights[source] = weight
    return weights
