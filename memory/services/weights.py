"""How much each judge's word weighs in a trust decision."""

from decimal import Decimal, InvalidOperation

from memory import conf
from memory.rules.signals import SOURCES


def source_weights() -> dict[str, Decimal]:
    """Each source's weight in [0, 1], from `SONDER_SOURCE_WEIGHTS`. Raises ValueError naming the setting."""
    weights = dict.fromkeys(SOURCES, Decimal(0))
    for part in conf.current().source_weights.split(","):
        source, _, value = part.strip().partition("=")
        try:
            weight = Decimal(value)
        except InvalidOperation:
            weight = Decimal(-1)
        if source not in weights or not 0 <= weight <= 1 or weight != round(weight, 3):
            raise ValueError(
                f"SONDER_SOURCE_WEIGHTS: {part!r} is no weight. Write source=weight, with a source of "
                f"{', '.join(SOURCES)} and a weight from 0 to 1 with at most 3 decimals."
            )
        weights[source] = weight
    return weights


def weight_of(source: str) -> Decimal:
    """The source's weight; stored with each credit, under every policy."""
    return source_weights()[source]
