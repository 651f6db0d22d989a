"""The policy `trial` of the product, in the order in which the product reads, updates and decides.

Expectations are stored from the sums before an interaction; then it is added; then every lesson concerned is judged
with the sums after it. The stages, coins and samples are decided by the product's own rules; the expected losses and
the ledgers are computed as arrays, since a run asks for millions of them.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from evaluation.trust.ledger import Ledgers, cohort_rows
from evaluation.trust.policy import BY_COIN, BY_QUARANTINE, PROBATION, SERVED, Move, Verdict
from evaluation.trust.sums import Rows, Sums
from evaluation.trust.world import CANDIDATES, Floats, Ints, World
from memory.rules.expectation import ExpectationConstants
from memory.rules.ledger import LedgerConstants, LedgerResult, Stage, allows_entry, allows_release, stage, step
from memory.rules.probation import (
    ProbationConstants,
    admits_trial,
    probation_evidence,
    withheld_by_coin,
    withheld_share,
)
from memory.rules.signals import SOURCES


class Trial:
    """A coin from ten to one, quarantine at two hundred to one, release below fifty to one, by default."""

    def __init__(
        self, world: World, ledger: LedgerConstants, probation: ProbationConstants, expectation: ExpectationConstants
    ) -> None:
        self._world, self._probation = world, probation
        self.constants = ledger
        lessons = world.scenario.lessons
        self.sums = Sums(lessons, len(world.base), CANDIDATES, expectation)
        self.ledgers = Ledgers(lessons, ledger)
        self.s = [0.0] * lessons
        self.on_trial = [False] * lessons
        self.d = [0.0] * lessons
        self.quarantined: dict[int, int] = {}  # lesson -> the interaction that quarantined it
        self.stored: Mapping[int, float] = {}  # of the latest verdict: lesson -> the loss that was expected
        self._samples: dict[int, list[tuple[int, float]]] = {}  # probation rows: number of the row, step
        self._weights = [float(ledger.weights[source]) for source in SOURCES]
        # Below this S no threshold is near, so there is nothing to decide about a lesson in service.
        self._quiet = math.log(min(ledger.trial_odds, ledger.quarantine_odds)) - 2 * ledger.tolerance

    def counts(self, source: int) -> bool:
        return self._weights[source] > 0

    def door(self, lesson: int, at: int) -> str:
        if lesson in self.quarantined:
            admitted = admits_trial(
                lesson=self._world.lesson_ids[lesson],
                interaction=self._world.interaction_ids[at],
                hours_since_entry=(at - self.quarantined[lesson]) * self._world.scenario.hours,
                d=self.d[lesson],
                constants=self._probation,
            )
            return PROBATION if admitted else BY_QUARANTINE
        if self.on_trial[lesson] and withheld_by_coin(
            lesson=self._world.lesson_ids[lesson],
            interaction=self._world.interaction_ids[at],
            share=self._withheld_share(lesson),
        ):
            return BY_COIN
        return SERVED

    def _withheld_share(self, lesson: int) -> float:
        """Of a lesson on trial, by its ledger as the last evaluation left it."""
        return withheld_share(self.s[lesson], self._probation)

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        weight = self._weights[verdict.source]
        rows, pairs = cohort_rows(
            self.sums,
            source=verdict.source,
            task=verdict.task,
            cohort=verdict.cohort,
            slots=verdict.slots,
            nobody=self._world.scenario.lessons,
        )
        held = self._held_rows(verdict)
        expected = self.sums.expected(rows)
        expected_without = self.sums.expected(held, withheld=True) if verdict.withheld else np.zeros(0)
        self.stored = dict(zip((*verdict.cohort, *verdict.withheld), (*expected, *expected_without), strict=True))
        self._add(verdict, rows, held, pairs, expected_without)
        if weight > 0:
            self._note_samples(verdict, weight)
            self.ledgers.remember(rows, weight, verdict.lost)
        return self._decide(verdict, weight)

    def _held_rows(self, verdict: Verdict) -> Rows:
        size = len(verdict.withheld)
        nobody = np.zeros((size, 0), dtype=np.int64)
        return Rows(
            lesson=np.array(verdict.withheld, dtype=np.int64),
            source=np.full(size, verdict.source),
            task=np.full(size, verdict.task),
            slot=np.array(verdict.withheld_slots, dtype=np.int64),
            peers=nobody,
            pairs=nobody,
        )

    def _add(self, verdict: Verdict, rows: Rows, held: Rows, pairs: Ints, expected_without: Floats) -> None:
        weight = self._weights[verdict.source]
        self.sums.add(
            source=verdict.source,
            task=verdict.task,
            lost=verdict.lost,
            weight=weight,
            cohort=rows.lesson,
            slots=rows.slot,
            pairs=pairs,
        )
        if weight > 0 and verdict.withheld:
            self.sums.add_without(held.lesson, verdict.lost, expected_without)

    def _note_samples(self, verdict: Verdict, weight: float) -> None:
        """Probation rows count for D with the loss that was expected in their own time."""
        for lesson, exposure in zip(verdict.cohort, verdict.exposures, strict=True):
            if exposure == PROBATION:
                e = round(self.stored[lesson], 12)
                gained = step(weight=weight, loss=int(verdict.lost), expected=e, constants=self.constants)
                self._samples[lesson].append((int(self.ledgers.seen[lesson]), gained))

    def _decide(self, verdict: Verdict, weight: float) -> Sequence[Move]:
        concerned = [*verdict.cohort, *verdict.withheld]
        exposures = [*verdict.exposures, *verdict.reasons]
        if not concerned:
            return ()
        found = self.ledgers.s(np.array(concerned), self.sums).tolist()
        moves: list[Move] = []
        for lesson, exposure, s in zip(concerned, exposures, found, strict=True):
            self.s[lesson] = s
            if s < self._quiet and lesson not in self.quarantined:
                self.on_trial[lesson] = False
                continue
            moves += self._stage(lesson, exposure, s, weight, verdict)
        return moves

    def _stage(self, lesson: int, exposure: str, s: float, weight: float, verdict: Verdict) -> Sequence[Move]:
        """Where the lesson stands now, by the product's rule."""
        tasks = self.ledgers.loss_tasks(lesson)
        loss = int(verdict.lost)
        decision = stage(
            LedgerResult(points=(), s=s, peak=s, losses=0, expected=0.0, loss_tasks=tasks),
            quarantined=lesson in self.quarantined,
            entry_allowed=allows_entry(exposure=exposure, weight=weight, loss=loss),
            release_allowed=allows_release(exposure=exposure, weight=weight, loss=loss),
            constants=self.constants,
        )
        self.on_trial[lesson] = decision.stage == Stage.TRIAL
        if decision.entered:
            self.quarantined[lesson] = verdict.at
            self._samples[lesson], self.d[lesson] = [], 0.0
            return (Move(lesson=lesson, at=verdict.at, entered=True),)
        if decision.left:
            del self.quarantined[lesson]
            return (Move(lesson=lesson, at=verdict.at, entered=False),)
        if lesson in self.quarantined:
            oldest = int(self.ledgers.seen[lesson]) - self.constants.window
            steps = [gained for number, gained in self._samples[lesson] if number >= oldest]
            self.d[lesson] = probation_evidence(steps, self._probation)
        return ()
