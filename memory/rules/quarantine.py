"""Policy `reference`: when a run of losses takes a lesson out of service.

The evidence is the epoch, the eligible losses since the lesson's last eligible win. Four gates must all pass: enough
losses, bad enough, enough of the blame, and too many for chance in lessons that were scored as often.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Final
from uuid import UUID

from memory.rules.attribution import TOLERANCE, reaches, stays_within, total_share
from memory.rules.bands import band_of
from memory.rules.signals import loss_of


@dataclass(frozen=True, kw_only=True)
class ReferenceConstants:
    """Thresholds of the policy."""

    losses: int = 5  # losses needed when they fall on enough different tasks
    losses_one_task: int = 6  # losses needed otherwise: one hard task must speak louder
    tasks: int = 2  # different tasks that make the lower floor apply
    mean_reward: float = -0.5  # highest mean reward of the losses that counts as bad
    share: float = 2.0  # losses that must fall to this lesson once each is divided by its cohort
    p: float = 0.01  # highest probability of such a run by chance
    tolerance: float = TOLERANCE  # slack of every comparison
    sources: tuple[str, ...] = ("caller", "machine")  # judges whose outcomes count; the others move nothing


DEFAULTS: Final = ReferenceConstants()


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """One credited interaction in which the lesson was handed out (served or on probation)."""

    interaction: UUID  # where it was handed out
    task_digest: str  # digest of the normalised task text
    source: str  # who judged
    reward: Decimal  # in [-1, 1]; < 0 is a loss, > 0 a win, 0 is not scored
    cohort: int  # lessons handed out in that interaction, this one included, >= 1
    credit_seq: int  # place in the order of crediting


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One condition of a decision, in numbers and in words."""

    name: str  # stable identifier
    value: float  # what was found
    threshold: float  # what it is compared with
    passed: bool  # whether the condition holds, tolerance included
    words: str  # the same as a sentence for a person


@dataclass(frozen=True, kw_only=True)
class ReferenceDecision:
    """Whether the lesson is to be quarantined, with every reason."""

    quarantine: bool  # all gates passed
    gates: tuple[Gate, ...]  # losses, mean_reward, share, base_rate
    losses: int  # losses in the epoch
    tasks: int  # different tasks among them
    share: float  # losses that fall to this lesson
    rate: float  # loss rate of lessons scored as often, in (0, 1)
    p_value: float | None  # rate ** share; None while the epoch has no loss
    epoch_start: int | None  # credit_seq of the epoch's first loss; None while it has none


def evaluate_reference(
    rows: Sequence[EvidenceRow], *, scored: int, rate: float, constants: ReferenceConstants = DEFAULTS
) -> ReferenceDecision:
    """Judge a lesson by its rows, newest first; older rows than its last eligible win are not read.

    `scored` is the lesson's number of eligible wins and losses over its life, `rate` the loss rate of its band. Raises
    ValueError when rows are not newest first, when the epoch holds more losses than `scored`, and for a `rate` outside
    (0, 1).
    """
    if not 0 < rate < 1:
        raise ValueError(f"A rate lies strictly between 0 and 1, not at {rate}.")
    if any(newer.credit_seq <= older.credit_seq for newer, older in pairwise(rows)):
        raise ValueError("Rows must come newest first, each with its own credit_seq.")
    epoch = tuple(_epoch(rows, constants))
    if len(epoch) > scored:
        raise ValueError(f"{len(epoch)} losses in the epoch cannot be among {scored} scored retrievals.")
    losses = len(epoch)
    tasks = len({row.task_digest for row in epoch})
    share = total_share(row.cohort for row in epoch)
    gates = (
        _losses_gate(losses, tasks, constants),
        _reward_gate(epoch, constants),
        _share_gate(share, constants),
        _base_rate_gate(scored, rate, share, constants),
    )
    return ReferenceDecision(
        quarantine=all(gate.passed for gate in gates),
        gates=gates,
        losses=losses,
        tasks=tasks,
        share=share,
        rate=rate,
        p_value=rate**share if epoch else None,
        epoch_start=epoch[-1].credit_seq if epoch else None,
    )


def _epoch(rows: Sequence[EvidenceRow], constants: ReferenceConstants) -> Iterator[EvidenceRow]:
    """The eligible losses, newest first, up to the first eligible win. A reward of 0 is neither."""
    for row in rows:
        loss = loss_of(row.reward)
        if row.source not in constants.sources or loss is None:
            continue
        if not loss:
            return
        yield row


def _losses_gate(losses: int, tasks: int, constants: ReferenceConstants) -> Gate:
    needed = constants.losses if tasks >= constants.tasks else constants.losses_one_task
    return Gate(
        name="losses",
        value=losses,
        threshold=needed,
        passed=losses >= needed,
        words=f"{_count(losses, 'loss', 'losses')} on {_count(tasks, 'task', 'tasks')} since the last win; "
        f"{constants.losses} on at least {constants.tasks} tasks, or {constants.losses_one_task} in all, are needed.",
    )


def _reward_gate(epoch: Sequence[EvidenceRow], constants: ReferenceConstants) -> Gate:
    mean = float(sum((row.reward for row in epoch), Decimal(0)) / len(epoch)) if epoch else 0.0
    found = f"The mean reward of these losses is {mean:.2f}" if epoch else "There is no loss to take a mean reward of"
    return Gate(
        name="mean_reward",
        value=mean,
        threshold=constants.mean_reward,
        passed=bool(epoch) and stays_within(mean, constants.mean_reward, constants.tolerance),
        words=f"{found}; {constants.mean_reward:.2f} or lower is needed.",
    )


def _share_gate(share: float, constants: ReferenceConstants) -> Gate:
    return Gate(
        name="share",
        value=share,
        threshold=constants.share,
        passed=reaches(share, constants.share, constants.tolerance),
        words=f"Divided among the lessons handed out together, {share:.2f} losses fall to this lesson; "
        f"{constants.share:.2f} are needed.",
    )


def _base_rate_gate(scored: int, rate: float, share: float, constants: ReferenceConstants) -> Gate:
    p_value = rate**share
    return Gate(
        name="base_rate",
        value=p_value,
        threshold=constants.p,
        passed=stays_within(p_value, constants.p, constants.tolerance),
        words=f"{_peers_in_words(scored)} lose {rate:.1%} of the time, so losing {share:.2f} in a row by chance "
        f"has probability {p_value:.2g}; {constants.p:g} or lower is needed.",
    )


def _peers_in_words(scored: int) -> str:
    if scored < 1:
        return "Lessons without a scored serving"
    band = band_of(scored)
    if band.upper is None:
        return f"Lessons with {band.lower} or more scored servings"
    if band.lower == band.upper:
        return f"Lessons with {_count(band.lower, 'scored serving', 'scored servings')}"
    return f"Lessons with {band.lower} to {band.upper} scored servings"


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
