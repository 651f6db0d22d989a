"""The policy `reference` of the product: losses since the last win, judged by the product's own rule."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np

from evaluation.trust.policy import Move, Verdict
from evaluation.trust.sampling import Sampled
from evaluation.trust.world import World
from memory.rules.bands import BANDS, band_of, rate_without
from memory.rules.probation import ProbationConstants
from memory.rules.quarantine import EvidenceRow, ReferenceConstants, evaluate_reference
from memory.rules.signals import SOURCES, reward_of

#: What each judge says of a loss: a person rejects, a program reports a failure.
LOSS: Final = {source: reward_of("rejected" if source == "caller" else "failed") for source in SOURCES}


class Reference(Sampled):
    """Quarantines by `evaluate_reference`. `live`: loss rates of the bands are measured daily instead of given."""

    def __init__(
        self, world: World, constants: ReferenceConstants, probation: ProbationConstants, *, live: bool
    ) -> None:
        lessons = world.scenario.lessons
        super().__init__(world, probation)
        self._constants, self._live = constants, live
        self._eligible = [source in constants.sources for source in SOURCES]
        self.wins, self.losses = np.zeros(lessons, dtype=np.int64), np.zeros(lessons, dtype=np.int64)
        self.epochs: list[list[EvidenceRow]] = [[] for _ in range(lessons)]  # newest first
        self._measured: dict[int, tuple[int, int]] = {}  # lower end of a band -> losses, scored
        self._day = 0

    def counts(self, source: int) -> bool:
        return self._eligible[source]

    def credit(self, verdict: Verdict) -> Sequence[Move]:
        self._measure(verdict.at)
        if self._eligible[verdict.source]:
            for lesson in verdict.cohort:
                self._note(lesson, verdict)
        return [
            Move(lesson=lesson, at=verdict.at, entered=self._toggle(lesson))
            for lesson in (*verdict.cohort, *verdict.withheld)
            if self._convicts(lesson) != (lesson in self.quarantined)
        ]

    def _note(self, lesson: int, verdict: Verdict) -> None:
        if not verdict.lost:
            self.wins[lesson] += 1
            self.epochs[lesson].clear()
            return
        self.losses[lesson] += 1
        self._last_loss[lesson] = verdict.at
        source = SOURCES[verdict.source]
        row = EvidenceRow(
            interaction=self._world.interaction_ids[verdict.at],
            task_digest=self._world.digests[verdict.task],
            source=source,
            reward=Decimal(LOSS[source]),
            cohort=len(verdict.cohort),
            credit_seq=verdict.at,
        )
        self.epochs[lesson].insert(0, row)

    def _convicts(self, lesson: int) -> bool:
        if len(self.epochs[lesson]) < min(self._constants.losses, self._constants.losses_one_task):
            return False  # the first gate alone says no
        scored = int(self.wins[lesson] + self.losses[lesson])
        rate = self._rate(scored, int(self.losses[lesson]))
        rows = self.epochs[lesson]
        return evaluate_reference(rows, scored=scored, rate=rate, constants=self._constants).quarantine

    def _toggle(self, lesson: int) -> bool:
        entered = lesson not in self.quarantined
        (self.quarantined.add if entered else self.quarantined.discard)(lesson)
        return entered

    def _rate(self, scored: int, losses: int) -> float:
        band = band_of(max(1, scored))
        if not self._live or band.lower not in self._measured:
            return band.prior
        in_band, of = self._measured[band.lower]
        return rate_without(band=band, losses=in_band, scored=of, own_losses=losses, own_scored=scored)

    def _measure(self, at: int) -> None:
        """Once a day, as the product's nightly job does."""
        day = int(at * self._world.scenario.hours / 24)
        if not self._live or day == self._day:
            return
        self._day = day
        scored = self.wins + self.losses
        for band in BANDS:
            inside = (scored >= band.lower) & (scored <= (band.upper or scored.max()))
            self._measured[band.lower] = int(self.losses[inside].sum()), int(scored[inside].sum())
