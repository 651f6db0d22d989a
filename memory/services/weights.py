"""How much each judge's word weighs in a trust decision."""

from decimal import Decimal

from memory.rules.ledger import DEFAULTS


def weight_of(source: str) -> Decimal:
    """The source's weight in [0, 1]; stored with each credit, under every policy."""
    return Decimal(DEFAULTS.weights.get(source, Decimal(0)))
