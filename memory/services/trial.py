"""Policy `trial`: a ledger of odds against what was to be expected without the lesson, settled by a coin."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from memory import conf
from memory.models.vocabulary import Exposure
from memory.rules.expectation import Expectation
from memory.rules.ledger import (
    LedgerConstants,
    LedgerResult,
    LedgerRow,
    Release,
    allows_entry,
    allows_release,
    on_trial,
    replay,
    stage,
    step,
)
from memory.rules.probation import probation_evidence
from memory.services.background import Background, Withheld
from memory.services.evidence import Assessment, Occasion, Record, Row, records, rows_of
from memory.services.weights import source_weights

# Why a lesson was withheld, as evidence calls it.
CONTROLS = {Exposure.WITHHELD_TRIAL.value: "coin", Exposure.WITHHELD_QUARANTINE.value: "quarantine"}
OCCASIONS = ("loss", "occasion")  # gates that only make sense when something has just been credited


def ledger_constants() -> LedgerConstants:
    """The policy's constants from the settings."""
    settings = conf.current()
    return LedgerConstants(
        odds_ratio=settings.odds_ratio,
        window=settings.ledger_window,
        trial_odds=settings.trial_odds,
        quarantine_odds=settings.quarantine_odds,
        release_odds=settings.release_odds,
        weights=source_weights(),
    )


class TrialPolicy:
    """Ten to one: a coin decides; two hundred to one: quarantine; below fifty to one: back."""

    name = "trial"

    def __init__(self, constants: LedgerConstants) -> None:
        self.constants = constants
        self.sources: Sequence[str] = tuple(source for source, weight in constants.weights.items() if weight > 0)

    def assess(
        self, lessons: Iterable[UUID], account_id: UUID | None, occasions: Mapping[UUID, Occasion] | None = None
    ) -> list[tuple[Record, Assessment]]:
        ids = sorted(set(lessons))
        rows = rows_of(ids, self.sources, self.constants.window, occasions)
        background = Background.read(account_id, ids, rows)
        return [
            (record, self._judge(record, background, (occasions or {}).get(record.lesson)))
            for record in records(ids, self.sources, rows)
        ]

    def _judge(self, record: Record, background: Background, occasion: Occasion | None) -> Assessment:
        record = replace(record, rows=tuple(background.with_cohort(row) for row in record.rows))
        expected = {row.interaction: background.expected(record.lesson, row) for row in record.rows}
        ledger = replay(
            [
                LedgerRow(
                    interaction=row.interaction,
                    credit_seq=row.credit_seq,
                    task_digest=row.task_digest,
                    weight=row.weight,
                    loss=int(row.reward < 0),
                    expected=expected[row.interaction].expected_loss,
                )
                for row in record.rows
            ],
            self.constants,
        )
        released = None
        if record.released_seq is not None and record.released_s is not None:
            released = Release(credit_seq=record.released_seq, s=record.released_s)
        quarantined = record.state == "quarantined"
        decision = stage(
            ledger,
            quarantined=quarantined,
            entry_allowed=occasion is not None and _entry(occasion),
            release_allowed=occasion is not None and _release(occasion),
            released=released,
            constants=self.constants,
        )
        gates = [asdict(gate) for gate in decision.gates if occasion is not None or gate.name not in OCCASIONS]
        return Assessment(
            enter=decision.entered,
            leave=decision.left,
            s=ledger.s,
            d=self._probation(record),
            on_trial=on_trial(ledger, released, self.constants) and not (quarantined or decision.entered),
            evidence={
                **self._evidence(record, ledger, expected),
                "without_it": _controls(background.withheld.get(record.lesson, {})),
                "gates": gates,
            },
        )

    def _probation(self, record: Record) -> float:
        """D: the steps of the probation rows since the quarantine began, with the expectations of their own time."""
        since = record.quarantined_at
        if since is None:
            return 0.0
        rows = [row for row in record.rows if row.exposure == "probation" and row.exposed_at >= since]
        return probation_evidence(
            step(
                weight=row.weight,
                loss=int(row.reward < 0),
                expected=float(row.expected),
                constants=self.constants,
            )
            for row in reversed(rows)
            if row.expected is not None
        )

    def _evidence(self, record: Record, ledger: LedgerResult, expected: Mapping[UUID, Expectation]) -> dict[str, Any]:
        """Everything the decision knew; the rows are those of the most incriminating stretch, newest first."""
        by_interaction = {row.interaction: row for row in record.rows}
        points = ledger.stretch or ledger.points
        return {
            "policy": self.name,
            "constants": {**asdict(self.constants), "weights": {k: str(v) for k, v in self.constants.weights.items()}},
            "odds": math.exp(ledger.s),
            "s": ledger.s,
            "wins": record.wins,
            "losses": record.losses,
            "loss_tasks": ledger.loss_tasks,
            "enough_to_judge": ledger.enough_to_judge,
            "with_it": {
                "lost": sum(point.row.loss for point in points),
                "n": len(points),
                "expected": math.fsum(point.row.expected for point in points),
            },
            "rows": [
                _row_as_json(by_interaction[point.row.interaction], expected[point.row.interaction], point.s)
                for point in reversed(points)
            ],
        }


def _entry(occasion: Occasion) -> bool:
    return allows_entry(exposure=occasion.exposure, weight=occasion.weight, loss=occasion.loss)


def _release(occasion: Occasion) -> bool:
    return allows_release(
        exposure=occasion.exposure,
        weight=occasion.weight,
        loss=occasion.loss,
        weight_before=occasion.weight_before,
    )


def _row_as_json(row: Row, e: Expectation, s: float) -> dict[str, Any]:
    """A row as evidence: no text, so that an erasure finds nothing of it in a journal."""
    return {
        "interaction": str(row.interaction),
        "account": str(row.account),
        "task": row.task_digest[:12],
        "source": row.source,
        "signal": row.signal,
        "reward": float(row.reward),
        "exposure": row.exposure,
        "cohort": row.cohort,
        "at": row.at.isoformat(),
        "rate": e.rate,
        "task_factor": e.task_factor,
        "peer_factor": e.peer_factor,
        "niche_factor": e.niche_factor,
        "expected": e.expected_loss,
        "odds": math.exp(s),
    }


def _controls(withheld: Mapping[str, Withheld]) -> dict[str, dict[str, Any]]:
    """What happened without the lesson, by why it was withheld."""
    return {
        CONTROLS[exposure]: {"lost": int(held.tally.observed), "n": held.n, "expected": float(held.tally.expected)}
        for exposure, held in withheld.items()
    }
