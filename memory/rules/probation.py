"""Which interactions still see a lesson that is being tested or kept out.

Every coin is a hash, never a random number: the same lesson and the same task or interaction always give the same
answer, so an exposure can be checked after the fact and a retry cannot toss again.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class ProbationConstants:
    """How much of a doubtful lesson's work still reaches agents."""

    after_hours: float = 24.0  # pause before probation, so that one bad afternoon is over before the first sample
    share: float = 0.05  # admitted at first, 1 in 20: little harm if bad, an exit if not; 0 is off
    ceiling: float = 0.5  # admitted at most: the other half stays a control group
    evidence_cap: float = 3.0  # most that losses on probation count, so that 1 in 400 is always admitted
    even_odds: float = 20.0  # of the record of a lesson on trial, at which an even coin decides
    sharpness: float = 2.0  # how fast the coin turns beyond: 1 follows the probability of harm, more the likelier side
    most_withheld: float = 0.95  # share of a lesson on trial that is withheld at most: the rest is what can clear it

    def __post_init__(self) -> None:
        if not 0 <= self.share <= self.ceiling <= 1 or not 0 < self.most_withheld < 1:
            raise ValueError("Shares must satisfy 0 <= share <= ceiling <= 1 and 0 < most_withheld < 1.")
        if self.after_hours < 0 or self.evidence_cap < 0:
            raise ValueError("The pause and the cap of the evidence cannot be negative.")
        if self.even_odds <= 0 or self.sharpness <= 0:
            raise ValueError("The odds of an even coin and its sharpness must be positive.")


DEFAULTS: Final = ProbationConstants()

_BELOW_ONE: Final = math.nextafter(1.0, 0.0)


def _fraction(data: bytes) -> float:
    """The first 8 bytes of SHA-256, big-endian, divided by 2**64: a number in [0, 1).

    The largest 64-bit integers would round to 1.0, which no comparison with a probability of 1 may meet.
    """
    return min(int.from_bytes(hashlib.sha256(data).digest()[:8], "big") / 2**64, _BELOW_ONE)


def task_fraction(lesson: UUID, task_digest: str) -> float:
    """Where a lesson and a task fall in [0, 1), evenly and always the same.

    `task_digest` is the hexadecimal SHA-256 of the normalised task text; ValueError if it is not hexadecimal.
    """
    return _fraction(lesson.bytes + bytes.fromhex(task_digest))


def interaction_fraction(lesson: UUID, interaction: UUID) -> float:
    """Where a lesson and an interaction fall in [0, 1), evenly and always the same."""
    return _fraction(lesson.bytes + interaction.bytes)


def admits_reference(
    *, lesson: UUID, task_digest: str, hours_since_loss: float, after_hours: float, share: float = DEFAULTS.share
) -> bool:
    """Whether a lesson quarantined under the policy `reference` is served on this task as a probation sample.

    A fixed `share` of tasks, from `after_hours` after the lesson's last loss on.
    """
    return hours_since_loss >= after_hours and task_fraction(lesson, task_digest) < share


def counted_evidence(s: float, *, released_s: float | None = None, trial_odds: float) -> float:
    """What of the ledger's S the coin goes by, in nats.

    All of it; but once a reviewer has released the lesson to trial at `released_s`, what had spoken against it by then
    counts as no more than `trial_odds`, the least that puts a lesson on trial, and what came since counts in full.
    """
    return s if released_s is None else min(s, math.log(trial_odds) + max(0.0, s - released_s))


def withheld_share(s: float, constants: ProbationConstants = DEFAULTS) -> float:
    """How likely a lesson on trial is left out of an interaction, in (0, most_withheld].

    The odds of leaving it out are (odds of its record / even_odds) ** sharpness, `s` being the log of the former
    (`counted_evidence`): at 10 to 1 it is left out one time in five, at 20 to 1 of half, at 50 to 1 six times in seven.
    To act on a belief the more often the likelier it is, and never always, keeps both sides of the comparison alive and
    spends little on the likelier loser (Thompson, On the Likelihood that One Unknown Probability Exceeds Another,
    Biometrika 25, 1933; with the exponent of Luce, Individual Choice Behavior, 1959).
    """
    withheld = 1 / (1 + math.exp(-constants.sharpness * (s - math.log(constants.even_odds))))
    return min(constants.most_withheld, withheld)


def withheld_by_coin(*, lesson: UUID, interaction: UUID, share: float) -> bool:
    """Whether a lesson on trial, of which `share` is withheld (`withheld_share`), is left out of this interaction."""
    return interaction_fraction(lesson, interaction) < share


def probation_evidence(steps: Iterable[float], constants: ProbationConstants = DEFAULTS) -> float:
    """D, the evidence of a quarantined lesson's probation rows, oldest first: the sum of their ledger steps (nats).

    The cap holds after every row, so that a win always counts in full, however many losses came before.
    """
    d = 0.0
    for step in steps:
        d = min(constants.evidence_cap, d + step)
    return d


def probation_probability(d: float, constants: ProbationConstants = DEFAULTS) -> float:
    """How likely a quarantined lesson is served under the policy `trial`: min(ceiling, share * exp(-D)), in [0, 1].

    `d` is the evidence since the lesson entered quarantine (`probation_evidence`): wins lower it and open the door.
    """
    if constants.share == 0:
        return 0.0
    most = math.log(constants.ceiling / constants.share)  # beyond it exp() could only overflow
    exponent = min(-min(d, constants.evidence_cap), most)
    return min(constants.ceiling, constants.share * math.exp(exponent))


def admits_trial(
    *, lesson: UUID, interaction: UUID, hours_since_entry: float, d: float, constants: ProbationConstants = DEFAULTS
) -> bool:
    """Whether a lesson quarantined under the policy `trial` is served in this interaction as a probation row.

    `hours_since_entry` counts from the moment it was quarantined, `d` is its probation evidence.
    """
    if hours_since_entry < constants.after_hours:
        return False
    return interaction_fraction(lesson, interaction) < probation_probability(d, constants)
