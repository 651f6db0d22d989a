"""The two policies over sums in memory: every decision is made by the product's own rules."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Protocol
from uuid import UUID

from evaluation.replay.constants import Chosen
from evaluation.replay.sums import Known, Sums, Work, newest, scored
from memory.rules.bands import band_of
from memory.rules.expectation import expected_loss
from memory.rules.ledger import (
    LedgerConstants,
    LedgerRow,
    Release,
    allows_entry,
    allows_release,
    on_trial,
    replay,
    stage,
)
from memory.rules.probation import counted_evidence, withheld_share
from memory.rules.quarantine import EvidenceRow, ReferenceConstants, evaluate_reference
from memory.services.evidence import Occasion
from memory.services.reference import LONG_WINDOW

NOBODY: frozenset[UUID] = frozenset()


@dataclass(slots=True, kw_only=True)
class Standing:
    """Where a lesson stands in the replay."""

    state: str = "active"  # `active`, `quarantined`, or `out` of service by a person's decision
    held: bool = False  # a person, and not the policy, put it into its present quarantine
    ledger_from: int = 0  # rows up to here are history
    released: Release | None = None  # a reviewer's release to trial
    excused: frozenset[UUID] = field(default=NOBODY)  # interactions whose loss a person excused
    s: float | None = None  # the ledger of the last look, in nats; None before the first, and under `reference`
    on_trial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a policy makes of a lesson."""

    enter: bool  # a lesson in service goes into quarantine now
    leave: bool  # a quarantined one comes out now, unless a person holds it
    s: float | None = None
    on_trial: bool = False


class Judge(Protocol):
    """A policy. `judge` changes nothing."""

    knows_trial: bool  # a reviewer can release a lesson to trial

    def judge(self, lesson: Known, standing: Standing, sums: Sums, occasion: Occasion) -> Verdict: ...

    def withheld(self, standing: Standing) -> float:
        """The share of a lesson on trial that a coin leaves out."""


class TrialJudge:
    """The policy `trial`."""

    knows_trial = True

    def __init__(self, constants: LedgerConstants) -> None:
        self._constants = constants
        self._sources = frozenset(source for source, weight in constants.weights.items() if weight > 0)

    def judge(self, lesson: Known, standing: Standing, sums: Sums, occasion: Occasion) -> Verdict:
        constants = self._constants
        counted = newest(lesson.rows, self._sources, standing.ledger_from, standing.excused)
        works = list(islice(counted, constants.window))
        ledger = replay(self._rows(lesson, works, sums), constants)
        quarantined = standing.state == "quarantined"
        decision = stage(
            ledger,
            quarantined=quarantined,
            entry_allowed=allows_entry(exposure=occasion.exposure, weight=occasion.weight, loss=occasion.loss),
            release_allowed=allows_release(
                exposure=occasion.exposure,
                weight=occasion.weight,
                loss=occasion.loss,
                weight_before=occasion.weight_before,
            ),
            released=standing.released,
            constants=constants,
        )
        tested = on_trial(ledger, standing.released, constants) and not (quarantined or decision.entered)
        return Verdict(enter=decision.entered, leave=decision.left, s=ledger.s, on_trial=tested)

    def withheld(self, standing: Standing) -> float:
        """As the last look left it; one that the journal alone put on trial counts as just come."""
        trial_odds = self._constants.trial_odds
        counted = counted_evidence(
            math.log(trial_odds) if standing.s is None else standing.s,
            released_s=standing.released.s if standing.released else None,
            trial_odds=trial_odds,
        )
        return withheld_share(counted)

    def _rows(self, lesson: Known, works: list[Work], sums: Sums) -> list[LedgerRow]:
        """The lesson's rows with what was to be expected of each, with the sums as they stand."""
        niche = sums.niche(lesson)
        peers = {peer: sums.peer_without(lesson, peer) for peer in {peer for work in works for peer in work.cohort}}
        usual = {source: sums.source_without(lesson, source) for source in {work.source for work in works}}
        rows = []
        for work in works:
            n, losses = usual[work.source]
            expected = expected_loss(
                losses=losses,
                n=n,
                task=sums.task_without(lesson, work.task),
                peers=[peers[peer] for peer in work.cohort if peer is not lesson],
                niche=niche,
            )
            rows.append(
                LedgerRow(
                    interaction=work.interaction,
                    credit_seq=work.seq,
                    task_digest=work.task,
                    weight=self._constants.weights[work.source],
                    loss=work.loss,
                    expected=expected.expected_loss,
                )
            )
        return rows


class ReferenceJudge:
    """The policy `reference`. `rates` are the bands' loss rates where they are measured in the store."""

    knows_trial = False

    def __init__(
        self, constants: ReferenceConstants, weights: Mapping[str, Decimal], rates: Mapping[int, float]
    ) -> None:
        self._constants = constants
        self._sources = frozenset(source for source in constants.sources if weights[source] > 0)
        self._rates = rates

    def judge(self, lesson: Known, standing: Standing, sums: Sums, occasion: Occasion) -> Verdict:
        """What moved the evidence does not matter here: the losses since the last win alone decide."""
        counted = newest(lesson.rows, self._sources, standing.ledger_from, standing.excused)
        epoch = []
        for work in islice(counted, LONG_WINDOW):
            if not work.loss:
                break
            epoch.append(_evidence(work))
        n = scored(lesson, self._constants.sources)
        band = band_of(max(1, n))
        rate = self._rates.get(band.lower, band.prior)
        found = evaluate_reference(epoch, scored=n, rate=rate, constants=self._constants)
        return Verdict(enter=found.quarantine, leave=not found.quarantine)

    def withheld(self, standing: Standing) -> float:
        """This policy tosses no coin."""
        return 0.0


def _evidence(work: Work) -> EvidenceRow:
    assert work.reward is not None
    return EvidenceRow(
        interaction=work.interaction,
        task_digest=work.task,
        source=work.source,
        reward=work.reward,
        cohort=len(work.cohort),
        credit_seq=work.seq,
    )


def judge_of(chosen: Chosen, rates: Mapping[int, float]) -> Judge:
    """The chosen policy."""
    if chosen.policy == "trial":
        return TrialJudge(chosen.ledger)
    return ReferenceJudge(chosen.reference, chosen.ledger.weights, rates)
