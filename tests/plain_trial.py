"""The trial policy once more, as plainly as it can be written: floats, dictionaries, the whole log in memory.

It shares no code with the product. Tests hold the product's rules and services to it, row by row.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field

WEIGHT = {"caller": 1.0, "machine": 0.7, "self_curriculum": 0.5, "attributed": 0.0, "unknown": 0.0}
TRIAL, RELEASE, QUARANTINE = math.log(10), math.log(50), math.log(200)
SLACK = 1e-9


@dataclass
class Plain:
    """Everything credited so far. `shown` and `held` name lessons by anything that can be compared."""

    log: list[tuple] = field(default_factory=list)  # (source, task, shown, held, y)
    n: dict = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    task: dict = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    lesson: dict = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    n_with: dict = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    task_with: dict = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    pair: dict = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    without: dict = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    rows: dict = field(default_factory=lambda: defaultdict(list))  # lesson -> [(source, task, shown, y)]
    s: dict = field(default_factory=lambda: defaultdict(float))
    quarantined: set = field(default_factory=set)

    def expected(self, i, source, task, shown, *, control=False) -> float:
        n, lost = self.n[source]
        n_i, lost_i = self.n_with[i, source]
        rate = (lost - lost_i + 2.0) / (n - n_i + 10)
        o, e = self.task[task]
        o_i, e_i = self.task_with[i, task]
        factor = max(1.0, (o - o_i + 2) / (e - e_i + 2))
        if not control:
            seen = wanted = 0.0
            for k in shown:
                if k == i:
                    continue
                ok, ek = self.lesson[k][0] - self.pair[k, i][0], self.lesson[k][1] - self.pair[k, i][1]
                shrink = min(1.0, 10 / ek) if ek > 0 else 1.0
                seen, wanted = seen + ok * shrink, wanted + ek * shrink
            factor *= (seen + 3) / (wanted + 3)
            factor *= max(1.0, (self.without[i][0] + 3) / (self.without[i][1] + 3))
        odds = rate / (1 - rate) * factor
        return min(0.95, max(0.05, odds / (1 + odds)))

    def ledger(self, i) -> float:
        s = 0.0
        for source, task, shown, y in self.rows[i][-64:]:
            e = self.expected(i, source, task, shown)
            s = max(0.0, s + WEIGHT[source] * ((math.log(3) if y else 0.0) - math.log(1 + 2 * e)))
        return s

    def credit(self, source, task, shown, held, y) -> dict:
        """Credits one interaction; returns each lesson's expected loss as it stood before."""
        w = WEIGHT[source]
        stored = {i: self.expected(i, source, task, shown) for i in shown}
        stored |= {i: self.expected(i, source, task, shown, control=True) for i in held}
        b = (self.n[source][1] + 2.0) / (self.n[source][0] + 10)
        self._add(self.n, source, 1, y)
        self._add(self.task, task, y, b)
        for i in shown:
            self._add(self.n_with, (i, source), 1, y)
            self._add(self.task_with, (i, task), y, b)
            self._add(self.lesson, i, w * y, w * b)
            for k in shown:
                if k != i:
                    self._add(self.pair, (k, i), w * y, w * b)
        if w > 0:
            for i in held:
                self._add(self.without, i, y, stored[i])
            for i in shown:
                self.rows[i].append((source, task, tuple(shown), y))
        self._decide(shown, held, w, y)
        return stored

    def _decide(self, shown, held, w, y) -> None:
        for i in (*shown, *held):
            self.s[i] = self.ledger(i)
            if i in self.quarantined:
                occasion = w > 0 and (y == 0 if i in shown else y == 1)
                if occasion and self.s[i] <= RELEASE + SLACK:
                    self.quarantined.discard(i)
            elif i in shown and w > 0 and y and self.s[i] >= QUARANTINE - SLACK and self._on_two_tasks(i):
                self.quarantined.add(i)

    def _on_two_tasks(self, i) -> bool:
        return len({task for _, task, _, lost in self.rows[i][-64:] if lost}) >= 2

    @staticmethod
    def _add(sums, key, a, b) -> None:
        sums[key][0] += a
        sums[key][1] += b

    def on_trial(self, i) -> bool:
        return i not in self.quarantined and self.s[i] >= TRIAL - SLACK
