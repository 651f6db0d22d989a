"""The simulated policies are the product's: every row, every decision, held to `memory.rules` on the same log."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.trust.loop import run
from evaluation.trust.policies import DEFAULTS, Constants
from evaluation.trust.reference import Reference
from evaluation.trust.trial import Trial
from evaluation.trust.world import World, build
from evaluation.trust.worlds import Scenario
from memory.rules.bands import BANDS, band_of, rate_without
from memory.rules.ledger import LedgerConstants
from memory.rules.quarantine import EvidenceRow, evaluate_reference
from memory.rules.signals import SOURCES, reward_of
from tests.evaluation.product_log import TrialLog

#: Few lessons, much harm, judges of every kind: much is quarantined and much comes back within a few hundred verdicts.
CROWDED = Scenario(
    name="crowded", lessons=12, interactions=450, days=90, topics=3, loss_rate=0.35, cohort=3.5, harmful=0.25,
    turning=0.1, context=0.1, harm=3.5, scored=0.95, mix=(0.5, 0.2, 0.1, 0.1, 0.1),
)  # fmt: skip
#: Short windows and early thresholds make rings wrap and lessons come and go.
HASTY = replace(
    DEFAULTS,
    ledger=LedgerConstants(window=9, trial_odds=2, release_odds=4, quarantine_odds=8),
    probation=replace(DEFAULTS.probation, share=0.3),
)


class WatchedTrial(Trial):
    """Compares itself with the product's rules at every step."""

    def __init__(self, world: World, constants: Constants) -> None:
        super().__init__(world, constants.ledger, constants.probation, constants.expectation)
        self.log = TrialLog(world, constants)
        self.compared = {"doors": set(), "rows": 0, "entered": 0, "left": 0}

    def door(self, lesson, at) -> str:
        door = super().door(lesson, at)
        assert door == self.log.door(lesson, at), (at, lesson)
        self.compared["doors"].add(door)
        return door

    def credit(self, verdict):
        moves = super().credit(verdict)
        before = dict(self.log.quarantined)
        expected = self.log.credit(verdict)
        assert self.stored == pytest.approx(expected, abs=1e-9, rel=0), verdict.at
        for lesson in (*verdict.cohort, *verdict.withheld):
            assert self.s[lesson] == pytest.approx(self.log.s[lesson], abs=1e-9, rel=0), (verdict.at, lesson)
            assert self.on_trial[lesson] == self.log.on_trial[lesson], (verdict.at, lesson)
            if lesson in self.log.quarantined:
                assert self.d[lesson] == pytest.approx(self.log.d[lesson], abs=1e-9, rel=0), (verdict.at, lesson)
            self._compare_rows(lesson)
        assert self.quarantined == self.log.quarantined, verdict.at
        after = self.log.quarantined
        assert {(m.lesson, m.entered) for m in moves} == {(i, i in after) for i in before.keys() ^ after.keys()}
        self.compared["entered"] += sum(move.entered for move in moves)
        self.compared["left"] += sum(not move.entered for move in moves)
        return moves

    def _compare_rows(self, lesson) -> None:
        expected, order = self.ledgers.expected(np.array([lesson]), self.sums)
        points = self.log.points[lesson]
        assert expected[order >= 0] == pytest.approx([point.row.expected for point in points], abs=1e-9, rel=0)
        self.compared["rows"] += len(points)


@pytest.mark.parametrize(("constants", "seed"), [(DEFAULTS, 0), (HASTY, 1), (HASTY, 2)])
def test_every_row_and_every_decision_of_trial_is_what_the_rules_make_of_the_same_log(constants, seed) -> None:
    policy = WatchedTrial(build(CROWDED, seed), constants)
    run(policy.log.world, policy)
    assert policy.compared["rows"] > 3000
    assert policy.compared["entered"] >= 2
    assert policy.compared["doors"] == {"served", "probation", "withheld_trial", "withheld_quarantine"}
    assert constants is DEFAULTS or policy.compared["left"] >= 2


class WatchedReference(Reference):
    """Compares itself with the rule over all rows of each lesson."""

    def __init__(self, world: World, *, live: bool) -> None:
        super().__init__(world, DEFAULTS.reference, DEFAULTS.probation, live=live)
        self.rows = {lesson: [] for lesson in range(world.scenario.lessons)}
        self.world, self.live, self.day, self.measured, self.convicted = world, live, 0, {}, 0

    def credit(self, verdict):
        source = SOURCES[verdict.source]
        self._measure_plainly(int(verdict.at * self.world.scenario.hours / 24))
        if source in ("caller", "machine"):
            worse = "rejected" if source == "caller" else "failed"
            for lesson in verdict.cohort:
                row = EvidenceRow(
                    interaction=self.world.interaction_ids[verdict.at],
                    task_digest=self.world.digests[verdict.task],
                    source=source,
                    reward=reward_of(worse if verdict.lost else "tests_passed"),
                    cohort=len(verdict.cohort),
                    credit_seq=verdict.at,
                )
                self.rows[lesson].insert(0, row)
        moves = super().credit(verdict)
        for lesson in (*verdict.cohort, *verdict.withheld):
            assert (lesson in self.quarantined) == self._decides(lesson), (verdict.at, lesson)
        self.convicted += sum(move.entered for move in moves)
        return moves

    def _decides(self, lesson) -> bool:
        rows = self.rows[lesson]
        lost = sum(row.reward < 0 for row in rows)
        band = band_of(max(1, len(rows)))
        losses, scored = self.measured.get(band.lower, (0, 0))
        rate = band.prior
        if self.measured:
            rate = rate_without(band=band, losses=losses, scored=scored, own_losses=lost, own_scored=len(rows))
        return evaluate_reference(rows, scored=len(rows), rate=rate, constants=DEFAULTS.reference).quarantine

    def _measure_plainly(self, day) -> None:
        if day == self.day or not self.live:
            return
        self.day, self.measured = day, {band.lower: (0, 0) for band in BANDS}
        for rows in self.rows.values():
            if rows:
                lower = band_of(len(rows)).lower
                losses, scored = self.measured[lower]
                self.measured[lower] = losses + sum(row.reward < 0 for row in rows), scored + len(rows)


@pytest.mark.parametrize("live", [False, True])
def test_every_decision_of_reference_is_what_its_rule_makes_of_all_rows(live) -> None:
    convicted = 0
    for seed in range(3):
        policy = WatchedReference(build(replace(CROWDED, harmful=0.5), seed), live=live)
        run(policy.world, policy)
        convicted += policy.convicted
    assert convicted >= 2
