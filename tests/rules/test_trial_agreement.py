"""The product's rules against the plain implementation: every row of a random log of 10,000 interactions."""

import random
from collections import defaultdict
from decimal import Decimal
from uuid import UUID

import pytest

from memory.rules import expectation
from memory.rules.expectation import Tally
from memory.rules.ledger import DEFAULTS, LedgerRow, allows_entry, allows_release, replay, stage
from tests.plain_trial import WEIGHT, Plain


class Rules:
    """The product's pure rules over sums in memory, exact decimals as in the database."""

    def __init__(self) -> None:
        self.source = defaultdict(lambda: (0, 0))
        self.own_source = defaultdict(lambda: (0, 0))
        self.tally = defaultdict(Tally)
        self.rows = defaultdict(list)
        self.quarantined: set[int] = set()
        self.s: dict[int, float] = defaultdict(float)

    def add(self, key, o, e) -> None:
        old = self.tally[key]
        self.tally[key] = Tally(observed=Decimal(old.observed) + o, expected=Decimal(old.expected) + e)

    def expected(self, i, source, task, shown, *, control=False):
        n, lost = self.source[source]
        own_n, own_lost = self.own_source[i, source]
        common = {
            "losses": lost - own_lost,
            "n": n - own_n,
            "task": self.tally["task", task].without(self.tally["own", i, task]),
        }
        if control:
            return expectation.withheld_expectation(**common)
        peers = [self.tally["lesson", k].without(self.tally["pair", min(i, k), max(i, k)]) for k in shown if k != i]
        return expectation.expected_loss(**common, peers=peers, niche=self.tally["without", i])

    def credit(self, seq, source, task, shown, held, y) -> dict[int, float]:
        w = DEFAULTS.weights[source]
        stored = {i: self.expected(i, source, task, shown).expected_loss for i in shown}
        stored |= {i: self.expected(i, source, task, shown, control=True).expected_loss for i in held}
        b = expectation.baseline(losses=self.source[source][1], n=self.source[source][0])
        n, lost = self.source[source]
        self.source[source] = (n + 1, lost + y)
        self.add(("task", task), y, b)
        for i in shown:
            n, lost = self.own_source[i, source]
            self.own_source[i, source] = (n + 1, lost + y)
            self.add(("own", i, task), y, b)
            self.add(("lesson", i), w * y, w * b)
            for k in shown:
                if i < k:
                    self.add(("pair", i, k), w * y, w * b)
            if w > 0:
                self.rows[i].append((seq, source, task, tuple(shown), y))
        if w > 0:
            for i in held:
                self.add(("without", i), y, expectation.to_stored(stored[i]))
        for i in (*shown, *held):
            self.decide(i, w, y, exposure=self.exposure(i, shown))
        return stored

    def exposure(self, i, shown) -> str:
        quarantined = i in self.quarantined
        if i in shown:
            return "probation" if quarantined else "served"
        return "withheld_quarantine" if quarantined else "withheld_trial"

    def decide(self, i, w, y, *, exposure) -> None:
        ledger = replay(
            LedgerRow(
                interaction=UUID(int=seq),
                credit_seq=seq,
                task_digest=task,
                weight=DEFAULTS.weights[source],
                loss=lost,
                expected=self.expected(i, source, task, shown).expected_loss,
            )
            for seq, source, task, shown, lost in self.rows[i][-DEFAULTS.window :]
        )
        decision = stage(
            ledger,
            quarantined=i in self.quarantined,
            entry_allowed=allows_entry(exposure=exposure, weight=w, loss=y),
            release_allowed=allows_release(exposure=exposure, weight=w, loss=y),
        )
        self.s[i] = ledger.s
        if decision.entered:
            self.quarantined.add(i)
        elif decision.left:
            self.quarantined.discard(i)


def test_every_row_of_ten_thousand_interactions_agrees() -> None:
    rng = random.Random(2026)
    rules, plain = Rules(), Plain()
    harmful = set(range(12))
    moved = 0
    for seq in range(1, 10_001):
        task = f"task {rng.randint(1, 400)}"
        picked = [min(int(rng.expovariate(1 / 120)), 499) for _ in range(rng.randint(1, 3))]
        shown, held = [], []
        for i in dict.fromkeys(picked):
            chance = 0.8 if i in plain.quarantined else 0.5 if plain.on_trial(i) else 0.02
            (held if rng.random() < chance else shown).append(i)
        source = rng.choices(list(WEIGHT), (6, 3, 1, 1, 1))[0]
        y = int(rng.random() < (0.7 if harmful & set(shown) else 0.2))
        before = set(plain.quarantined)
        expected = plain.credit(source, task, shown, held, y)
        assert rules.credit(seq, source, task, shown, held, y) == pytest.approx(expected, abs=1e-9)
        for i in (*shown, *held):
            assert rules.s[i] == pytest.approx(plain.s[i], abs=1e-7), (seq, i)
        assert rules.quarantined == plain.quarantined, seq
        moved += len(before ^ plain.quarantined)
    assert moved >= 10, "the log must have entries and exits to agree on"
