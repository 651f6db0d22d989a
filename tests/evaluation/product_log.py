"""The product's rules over a log in memory: exact decimals, one row after another, no arrays."""

from collections import defaultdict
from decimal import Decimal

from evaluation.trust.policies import Constants
from evaluation.trust.policy import Verdict
from evaluation.trust.world import World
from memory.rules import expectation
from memory.rules.expectation import Tally
from memory.rules.ledger import LedgerResult, LedgerRow, Stage, allows_entry, allows_release, replay, stage, step
from memory.rules.probation import admits_trial, probation_evidence, withheld_by_coin, withheld_share
from memory.rules.signals import SOURCES


class TrialLog:
    """Everything credited so far, and where each lesson stands by `memory.rules`."""

    def __init__(self, world: World, constants: Constants) -> None:
        self.world, self.constants = world, constants
        self.source = defaultdict(lambda: (0, 0))  # losses, interactions
        self.tally = defaultdict(Tally)
        self.rows = defaultdict(list)  # lesson -> rows of positive weight: (verdict, stored expectation, exposure)
        self.quarantined: dict[int, int] = {}
        self.s, self.d, self.on_trial = defaultdict(float), defaultdict(float), defaultdict(bool)
        self.points = {}  # lesson -> its ledger row by row, as it was last judged

    def _add(self, key, o, e) -> None:
        old = self.tally[key]
        self.tally[key] = Tally(observed=Decimal(old.observed) + o, expected=Decimal(old.expected) + e)

    def expected(self, lesson, source, task, cohort, *, withheld=False) -> float:
        losses, n = self.source[source]
        own_losses, own_n = self.source[lesson, source]
        common = {
            "losses": losses - own_losses,
            "n": n - own_n,
            "task": self.tally["task", task].without(self.tally["own", lesson, task]),
            "constants": self.constants.expectation,
        }
        if withheld:
            return expectation.withheld_expectation(**common).expected_loss
        peers = [
            self.tally["lesson", k].without(self.tally["pair", min(lesson, k), max(lesson, k)])
            for k in cohort
            if k != lesson
        ]
        return expectation.expected_loss(**common, peers=peers, niche=self.tally["without", lesson]).expected_loss

    def ledger(self, lesson) -> LedgerResult:
        rows = [
            LedgerRow(
                interaction=self.world.interaction_ids[verdict.at],
                credit_seq=verdict.at,
                task_digest=self.world.digests[verdict.task],
                weight=self.constants.ledger.weights[SOURCES[verdict.source]],
                loss=int(verdict.lost),
                expected=self.expected(lesson, verdict.source, verdict.task, verdict.cohort),
            )
            for verdict, _, _ in self.rows[lesson][-self.constants.ledger.window :]
        ]
        return replay(rows, self.constants.ledger)

    def door(self, lesson, at) -> str:
        ids = {"lesson": self.world.lesson_ids[lesson], "interaction": self.world.interaction_ids[at]}
        if lesson in self.quarantined:
            hours = (at - self.quarantined[lesson]) * self.world.scenario.hours
            probation = self.constants.probation
            admitted = admits_trial(**ids, hours_since_entry=hours, d=self.d[lesson], constants=probation)
            return "probation" if admitted else "withheld_quarantine"
        share = withheld_share(self.s[lesson], self.constants.probation)
        coin = self.on_trial[lesson] and withheld_by_coin(**ids, share=share)
        return "withheld_trial" if coin else "served"

    def credit(self, verdict: Verdict) -> dict[int, float]:
        """Adds a verdict and moves the lessons concerned; returns the loss that was expected for each."""
        source, task, cohort = verdict.source, verdict.task, verdict.cohort
        weight, y = self.constants.ledger.weights[SOURCES[source]], int(verdict.lost)
        stored = {i: self.expected(i, source, task, cohort) for i in cohort}
        stored |= {i: self.expected(i, source, task, cohort, withheld=True) for i in verdict.withheld}
        losses, n = self.source[source]
        b = expectation.baseline(losses=losses, n=n, constants=self.constants.expectation)
        self.source[source] = losses + y, n + 1
        self._add(("task", task), y, b)
        for i, exposure in zip(cohort, verdict.exposures, strict=True):
            losses, n = self.source[i, source]
            self.source[i, source] = losses + y, n + 1
            self._add(("own", i, task), y, b)
            if weight > 0:
                self._add(("lesson", i), weight * y, weight * b)
                for k in cohort:
                    if i < k:
                        self._add(("pair", i, k), weight * y, weight * b)
                self.rows[i].append((verdict, expectation.to_stored(stored[i]), exposure))
        if weight > 0:
            for i in verdict.withheld:
                self._add(("without", i), y, expectation.to_stored(stored[i]))
        for i, exposure in zip((*cohort, *verdict.withheld), (*verdict.exposures, *verdict.reasons), strict=True):
            self._judge(i, exposure, weight, y, verdict.at)
        return stored

    def _judge(self, lesson, exposure, weight, loss, at) -> None:
        ledger = self.ledger(lesson)
        decision = stage(
            ledger,
            quarantined=lesson in self.quarantined,
            entry_allowed=allows_entry(exposure=exposure, weight=weight, loss=loss),
            release_allowed=allows_release(exposure=exposure, weight=weight, loss=loss),
            constants=self.constants.ledger,
        )
        self.points[lesson] = ledger.points
        self.s[lesson], self.on_trial[lesson] = ledger.s, decision.stage == Stage.TRIAL
        self.d[lesson] = self._evidence(lesson) if lesson in self.quarantined else 0.0
        if decision.entered:
            self.quarantined[lesson] = at
        if decision.left:
            del self.quarantined[lesson]

    def _evidence(self, lesson) -> float:
        """D: what the probation rows of this quarantine say, as far as the ledger still reads them."""
        ledger = self.constants.ledger
        return probation_evidence(
            (
                step(
                    weight=ledger.weights[SOURCES[verdict.source]],
                    loss=int(verdict.lost),
                    expected=float(stored),
                    constants=ledger,
                )
                for verdict, stored, exposure in self.rows[lesson][-ledger.window :]
                if exposure == "probation" and verdict.at >= self.quarantined[lesson]
            ),
            self.constants.probation,
        )
