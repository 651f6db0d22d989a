"""The words of a storm: what lessons say, and tasks that ask for one of them.

Every account has the same words, so that only a boundary keeps its lessons apart. A text names its own place and its
incarnation, which is how an answer tells on itself.
"""

import random
from functools import cache
from typing import Final

TWINS: Final = 2  # the first slots of a dozen, which say the same but for their marks: a plan makes one lesson of them
_TOPIC: Final = ("ledger", "quarter", "voucher", "auditor")
_OF_SLOT, _OF_INCARNATION = 4, 6  # words


@cache
def _made_up(key: str, n: int) -> tuple[str, ...]:
    rng = random.Random(key)
    return tuple("".join(rng.choice("bdfgklmnprtvz") + rng.choice("aou") for _ in range(3)) + "k" for _ in range(n))


def _of_slot(group: int, slot: int) -> tuple[str, ...]:
    return _made_up(f"{group} {max(slot, TWINS - 1)}", _OF_SLOT)


def text(dozen: int, group: int, slot: int, incarnation: int) -> str:
    """A lesson. Twins keep their words; at another slot the next incarnation is another value."""
    value = 0 if slot < TWINS else incarnation
    changing = _made_up(f"{group} {max(slot, TWINS - 1)} {value}", _OF_INCARNATION)
    words = " ".join((*_TOPIC, *_of_slot(group, slot), *changing))
    return f"Call `settle_ledger()` before {words} reach mark{dozen}x{slot}x{incarnation}."


def task(group: int, slot: int) -> str:
    """Work that the lesson at this slot fits best, and others beside it too."""
    return f"settle {' '.join((*_TOPIC, *_of_slot(group, slot)))}"
