"""How much each judge's word weighs in a trust decision."""

from decimal import Decimal

from memory import conf
from memory.rules.weights import parse_weights


def source_weights() -> dict[str, Decimal]:
    """Each source's weight in [0, 1]."""
    return parse_weights(conf.current().source_weights)


def weight_of(source: str) -> Decimal:
    """The source's weight; stored with each credit, under every policy."""
    return source_weights()[source]
