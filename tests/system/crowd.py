"""Many clients who judge the same work at once: who says what, known before anybody has said it."""

import random
from dataclasses import dataclass

SEED = 5081
SOURCES = ("caller", "machine", "attributed", "self_curriculum", "unknown")
SIGNALS = ("tests_passed", "used", "accepted", "rejected", "failed", "retracted")
OUTCOMES_OF_A_WORK = 8  # about; in up to five chains


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What one source says about one interaction, word after word. Chains come in any order between each other."""

    work: int  # number of the interaction
    source: str
    signals: tuple[str, ...]  # a word and its corrections; no two alike in a row


def works_of(outcomes: int) -> int:
    return outcomes // OUTCOMES_OF_A_WORK + 1


def chains(outcomes: int) -> list[Chain]:
    """The same every time: chains of so many outcomes in all, as each is to be sent, shuffled."""
    rng, made, left = random.Random(SEED), list[Chain](), outcomes
    places = [(work, source) for work in range(works_of(outcomes)) for source in SOURCES]
    rng.shuffle(places)
    for work, source in places:
        signals = _signals(rng, min(left, rng.randint(1, 4)))
        made += [Chain(work=work, source=source, signals=signals)] if signals else []
        left -= len(signals)
    assert left == 0
    return made


def _signals(rng: random.Random, n: int) -> tuple[str, ...]:
    said: list[str] = []
    for _ in range(n):
        new = [signal for signal in SIGNALS if signal != (said[-1] if said else "retracted")]
        said.append(rng.choice(new))
    return tuple(said)
