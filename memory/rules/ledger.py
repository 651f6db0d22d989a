"""Policy `trial`: a running account of how suspicious a lesson's record is.

Each eligible row adds the log-likelihood ratio between "this lesson multiplies the odds of losing by three" and "this
lesson does nothing" (Wald, Sequential Tests of Statistical Hypotheses, Annals of Mathematical Statistics 16, 1945);
the account never falls below zero (the CUSUM of Page, Continuous Inspection Schemes, Biometrika 41, 1954). A win
therefore costs a suspicion exactly its step and never wipes it out. exp(S) reads as odds: how many times likelier the
record is under the first statement, over its most incriminating stretch.

Nothing is accumulated in place: S is computed anew from a lesson's last rows with today's expectations, so a decision
is a pure function of the log. Rows and thresholds are compared in nats.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import Final
from uuid import UUID

from memory.rules.attribution import TOLERANCE, reaches, stays_within
from memory.rules.quarantine import Gate
from memory.rules.signals import SOURCES

#: Exposures in which the lesson was handed out, and in which it was left out though retrieval had chosen it.
SHOWN: Final = ("served", "probation")
WITHHELD: Final = ("withheld_trial", "withheld_quarantine")

#: Expected losses, and expected wins, below which a comparison says too little to show without a warning (the usual
#: n*p >= 5 rule for counts).
ENOUGH: Final = 5.0


def _default_weights() -> dict[str, Decimal]:
    """Someone's judgement counts fully, a program's verdict less, an agent's own exam half, hearsay not at all."""
    return {
        "caller": Decimal("1.0"),
        "machine": Decimal("0.7"),
        "self_curriculum": Decimal("0.5"),
        "attributed": Decimal(0),
        "unknown": Decimal(0),
    }


@dataclass(frozen=True, kw_only=True)
class LedgerConstants:
    """Thresholds of the policy, settled by simulation with known harmful lessons."""

    odds_ratio: float = 3.0  # the harm that the test is built to detect: odds of losing times this
    window: int = 64  # eligible rows that are read, so that a lesson answers for its recent past
    trial_odds: float = 10.0  # from these odds on a coin decides whether the lesson is served
    quarantine_odds: float = 200.0  # at these odds a loss takes it out of service
    release_odds: float = 50.0  # at these odds or below it comes back; lower than entry, so that it does not flicker
    relapse_odds: float = 3.0  # factor by which a record must worsen after a reviewer's release to count again
    loss_tasks: int = 2  # different tasks that the losses must fall on: one hard task is no proof
    weights: Mapping[str, Decimal] = field(default_factory=_default_weights, hash=False)  # source -> weight in [0, 1]
    tolerance: float = TOLERANCE  # slack of every comparison of S, in nats

    def __post_init__(self) -> None:
        if self.odds_ratio <= 1 or self.relapse_odds < 1 or self.window < 1 or self.loss_tasks < 1:
            raise ValueError("The odds ratio must exceed 1; relapse odds, window and tasks are at least 1.")
        if not all(1 < odds < self.quarantine_odds for odds in (self.trial_odds, self.release_odds)):
            raise ValueError("Trial and release odds must lie above 1 and below the quarantine odds.")
        if set(self.weights) != set(SOURCES) or not all(0 <= weight <= 1 for weight in self.weights.values()):
            raise ValueError(f"Weights between 0 and 1 are needed for exactly: {', '.join(SOURCES)}.")


DEFAULTS: Final = LedgerConstants()


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One scored interaction in which the lesson was handed out."""

    interaction: UUID  # where
    credit_seq: int  # place in the order of crediting, unique
    task_digest: str  # digest of the normalised task text
    weight: Decimal | float  # of the judge, in [0, 1]; a row of weight 0 is passed over
    loss: int  # 1 for a loss, 0 for a win
    expected: float  # probability of a loss if the lesson does nothing, with today's sums, in (0, 1)


@dataclass(frozen=True, kw_only=True)
class LedgerPoint:
    """The account after one row."""

    row: LedgerRow  # the row
    step: float  # what it added, in nats
    s: float  # S after it, >= 0


@dataclass(frozen=True, kw_only=True)
class LedgerResult:
    """The account over the rows that were read."""

    points: tuple[LedgerPoint, ...]  # oldest first
    s: float  # S after the last row, >= 0; 0 without rows
    peak: float  # the highest S on the way
    losses: int  # losses among the rows
    expected: float  # losses that were to be expected among them
    loss_tasks: int  # different tasks that the losses fell on

    @property
    def odds(self) -> float:
        """exp(S): how many times likelier the record is if the lesson does harm."""
        return math.exp(self.s)

    @property
    def enough_to_judge(self) -> bool:
        """Whether both losses and wins were expected often enough for the comparison to mean something."""
        return min(self.expected, len(self.points) - self.expected) >= ENOUGH

    @property
    def stretch(self) -> tuple[LedgerPoint, ...]:
        """The most incriminating stretch: the rows since S was last 0."""
        start = max((i + 1 for i, point in enumerate(self.points) if point.s == 0), default=0)
        return self.points[start:]


class Stage(StrEnum):
    """How far a lesson in service is trusted."""

    ACTIVE = "active"
    TRIAL = "trial"  # "being tested": a coin decides whether it is served
    QUARANTINED = "quarantined"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A reviewer's release to trial, which stands until the next quarantine or full release."""

    credit_seq: int  # the last row that had been credited then
    s: float  # S at that moment, in nats


@dataclass(frozen=True, kw_only=True)
class StageDecision:
    """Where the lesson stands now, whether that is a change of state, and why."""

    stage: Stage  # from now on
    entered: bool  # it goes into quarantine now
    left: bool  # it comes out of quarantine now
    gates: tuple[Gate, ...]  # of entry for a lesson in service; of release for a quarantined one


def step(*, weight: Decimal | float, loss: int, expected: float, constants: LedgerConstants = DEFAULTS) -> float:
    """What one row adds to S, in nats: w * (y ln 3 - ln(1 + 2e)), 3 being the odds ratio.

    Raises ValueError unless `loss` is 0 or 1, 0 < `expected` < 1 and 0 <= `weight` <= 1.
    """
    if loss not in (0, 1) or not 0 < expected < 1 or not 0 <= weight <= 1:
        raise ValueError(f"Not a scored row: loss {loss}, expected loss {expected}, weight {weight}.")
    gained = math.log(constants.odds_ratio) if loss else 0.0
    return float(weight) * (gained - math.log1p((constants.odds_ratio - 1) * expected))


def replay(rows: Iterable[LedgerRow], constants: LedgerConstants = DEFAULTS) -> LedgerResult:
    """The account over a lesson's last rows of positive weight, however `rows` is ordered.

    S = max(0, S + step), row by row in the order of crediting. Raises ValueError if two rows share a credit_seq.
    """
    eligible = sorted((row for row in rows if row.weight > 0), key=lambda row: row.credit_seq)
    if any(earlier.credit_seq == later.credit_seq for earlier, later in pairwise(eligible)):
        raise ValueError("Each row of a ledger has its own credit_seq.")
    points = _points(eligible[-constants.window :], constants)
    lost = [point.row for point in points if point.row.loss]
    return LedgerResult(
        points=points,
        s=points[-1].s if points else 0.0,
        peak=max((point.s for point in points), default=0.0),
        losses=len(lost),
        expected=math.fsum(point.row.expected for point in points),
        loss_tasks=len({row.task_digest for row in lost}),
    )


def _points(rows: Sequence[LedgerRow], constants: LedgerConstants) -> tuple[LedgerPoint, ...]:
    points = []
    s = 0.0
    for row in rows:
        gained = step(weight=row.weight, loss=row.loss, expected=row.expected, constants=constants)
        s = max(0.0, s + gained)
        points.append(LedgerPoint(row=row, step=gained, s=s))
    return tuple(points)


def allows_entry(*, exposure: str, weight: Decimal | float, loss: int | None) -> bool:
    """Whether a credited or corrected row can take its lesson into quarantine: an eligible loss that it was shown in.

    `loss` is None when every source has retracted.
    """
    return _known(exposure) in SHOWN and weight > 0 and loss == 1


def allows_release(
    *, exposure: str, weight: Decimal | float, loss: int | None, weight_before: Decimal | float | None = None
) -> bool:
    """Whether a credited or corrected row can bring its lesson out of quarantine.

    At its first credit an eligible win on probation or an eligible loss without the lesson can. A correction, for which
    `weight_before` is the weight that the row had until now, always can unless the row was and stays ineligible.
    """
    shown = _known(exposure) in SHOWN
    if weight_before is not None:
        return weight > 0 or weight_before > 0
    return weight > 0 and (loss == 1 if not shown else exposure == "probation" and loss == 0)


def _known(exposure: str) -> str:
    if exposure not in SHOWN + WITHHELD:
        raise ValueError(f"Unknown exposure {exposure!r}; expected one of: {', '.join(SHOWN + WITHHELD)}.")
    return exposure


def stage(
    ledger: LedgerResult,
    *,
    quarantined: bool,
    entry_allowed: bool,
    release_allowed: bool,
    released: Release | None = None,
    constants: LedgerConstants = DEFAULTS,
) -> StageDecision:
    """Where a lesson stands by its account.

    `quarantined` is its state until now; `entry_allowed` and `release_allowed` say which change the occasion allows
    (`allows_entry`, `allows_release`; rows that a person took out of the ledger allow a release). `released` is the
    standing release to trial, if any. No clock takes part.
    """
    gates: tuple[Gate, ...]
    if quarantined:
        gates = (_release_gate(ledger, constants), _release_occasion(release_allowed))
        left = all(gate.passed for gate in gates)
        after = _in_service(ledger, None, constants) if left else Stage.QUARANTINED
        return StageDecision(stage=after, entered=False, left=left, gates=gates)
    gates = (_entry_gate(ledger, released, constants), _tasks_gate(ledger, constants), _entry_occasion(entry_allowed))
    entered = all(gate.passed for gate in gates)
    after = Stage.QUARANTINED if entered else _in_service(ledger, released, constants)
    return StageDecision(stage=after, entered=entered, left=False, gates=gates)


def on_trial(ledger: LedgerResult, released: Release | None = None, constants: LedgerConstants = DEFAULTS) -> bool:
    """Whether a coin decides about serving a lesson that is not quarantined.

    From the trial odds on; after a release to trial in any case until a later row finds it below them.
    """
    if reaches(ledger.s, math.log(constants.trial_odds), constants.tolerance):
        return True
    return released is not None and all(point.row.credit_seq <= released.credit_seq for point in ledger.points)


def _in_service(ledger: LedgerResult, released: Release | None, constants: LedgerConstants) -> Stage:
    return Stage.TRIAL if on_trial(ledger, released, constants) else Stage.ACTIVE


def _entry_gate(ledger: LedgerResult, released: Release | None, constants: LedgerConstants) -> Gate:
    threshold = math.log(constants.quarantine_odds)
    reason = ""
    if released is not None and released.s + math.log(constants.relapse_odds) > threshold:
        threshold = released.s + math.log(constants.relapse_odds)
        reason = f", {constants.relapse_odds:g} times the odds at its release"
    return Gate(
        name="odds",
        value=ledger.odds,
        threshold=math.exp(threshold),
        passed=reaches(ledger.s, threshold, constants.tolerance),
        words=f"{_likelier(ledger, constants)} At least {_in_words(math.exp(threshold))} times is needed{reason}.",
    )


def _tasks_gate(ledger: LedgerResult, constants: LedgerConstants) -> Gate:
    return Gate(
        name="loss_tasks",
        value=ledger.loss_tasks,
        threshold=constants.loss_tasks,
        passed=ledger.loss_tasks >= constants.loss_tasks,
        words=f"Different tasks lost with it: {ledger.loss_tasks}; at least {constants.loss_tasks} are needed.",
    )


def _entry_occasion(allowed: bool) -> Gate:
    found = (
        "is an eligible loss with it" if allowed else "is not an eligible loss with it; only such a loss quarantines"
    )
    words = f"The outcome just credited {found}."
    return Gate(name="loss", value=float(allowed), threshold=1.0, passed=allowed, words=words)


def _release_gate(ledger: LedgerResult, constants: LedgerConstants) -> Gate:
    return Gate(
        name="release_odds",
        value=ledger.odds,
        threshold=constants.release_odds,
        passed=stays_within(ledger.s, math.log(constants.release_odds), constants.tolerance),
        words=f"{_likelier(ledger, constants)} At most {_in_words(constants.release_odds)} times frees it.",
    )


def _release_occasion(allowed: bool) -> Gate:
    found = "is one" if allowed else "is none"
    words = f"Only a win on probation, a loss without it or a correction frees it; the latest event {found}."
    return Gate(name="occasion", value=float(allowed), threshold=1.0, passed=allowed, words=words)


def _likelier(ledger: LedgerResult, constants: LedgerConstants) -> str:
    return (
        f"Its record is {_in_words(ledger.odds)} times likelier if it multiplies the odds of losing by "
        f"{constants.odds_ratio:g} than if it does nothing."
    )


def _in_words(odds: float) -> str:
    if odds >= 1e6:
        return "over a million"
    return f"{odds:,.0f}" if odds >= 10 else f"{odds:.1f}"
