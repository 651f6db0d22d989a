"""Policy `reference`: losses since the last win, divided by their cohorts, improbable for lessons scored as often."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import BandRate
from memory.models.scope import scoped
from memory.rules.bands import Band, band_of, rate_without
from memory.rules.quarantine import EvidenceRow, ReferenceConstants, evaluate_reference
from memory.services.evidence import Assessment, Occasion, Record, Row, cohort_sizes, records, rows_of

# Rows read of each lesson, newest first. The long window is for lessons whose last 32 rows hold no win: 256 losses in
# cohorts of at most 50 are worth 5 losses alone, far beyond every threshold, so more rows could decide nothing else.
WINDOW = 32
LONG_WINDOW = 256


class ReferencePolicy:
    """The reference system's rule."""

    name = "reference"

    def __init__(self, constants: ReferenceConstants) -> None:
        self.constants = constants
        self.sources: Sequence[str] = constants.sources

    def assess(
        self, lessons: Iterable[UUID], account_id: UUID | None, occasions: Mapping[UUID, Occasion] | None = None
    ) -> list[tuple[Record, Assessment]]:
        """What moved the evidence does not matter here: the epoch alone decides entry and release."""
        ids = sorted(set(lessons))
        rows = rows_of(ids, self.sources, WINDOW, occasions)
        unbroken = [i for i, own in rows.items() if len(own) == WINDOW and all(row.reward <= 0 for row in own)]
        if unbroken:
            rows.update(rows_of(unbroken, self.sources, LONG_WINDOW, occasions))
        found = records(ids, self.sources, rows)
        epochs = {record.lesson: since_last_win(record.rows) for record in found}
        sizes = cohort_sizes(row.interaction for epoch in epochs.values() for row in epoch)
        return [(record, self._judge(record, epochs[record.lesson], sizes, account_id)) for record in found]

    def _judge(
        self, record: Record, epoch: Sequence[Row], sizes: dict[UUID, int], account_id: UUID | None
    ) -> Assessment:
        losses = [replace(row, cohort=sizes[row.interaction]) for row in epoch]
        band = band_of(max(1, record.scored))
        rate = _rate(band, record, account_id)
        rows = [
            EvidenceRow(
                interaction=row.interaction,
                task_digest=row.task_digest,
                source=row.source,
                reward=row.reward,
                cohort=row.cohort,
                credit_seq=row.credit_seq,
            )
            for row in losses
        ]
        decision = evaluate_reference(rows, scored=record.scored, rate=rate, constants=self.constants)
        evidence: dict[str, Any] = {
            "policy": self.name,
            "constants": {**asdict(self.constants), "sources": list(self.constants.sources)},
            "quarantine": decision.quarantine,
            "gates": [asdict(gate) for gate in decision.gates],
            "wins": record.wins,
            "losses": record.losses,
            "epoch": {"losses": decision.losses, "tasks": decision.tasks, "share": decision.share},
            "band": {"lower": band.lower, "upper": band.upper, "prior": band.prior, "rate": rate},
            "p_value": decision.p_value,
            "rows": [row_as_json(row) for row in losses],
        }
        return Assessment(enter=decision.quarantine, leave=not decision.quarantine, evidence=evidence)


def since_last_win(rows: Sequence[Row]) -> list[Row]:
    """The losses since the last win: the epoch."""
    epoch: list[Row] = []
    for row in rows:
        if row.reward > 0:
            break
        epoch.append(row)
    return epoch


def row_as_json(row: Row) -> dict[str, Any]:
    """A loss as evidence: no text, so that an erasure finds nothing of it in a journal."""
    return {
        "interaction": str(row.interaction),
        "account": str(row.account),
        "task": row.task_digest[:12],
        "source": row.source,
        "signal": row.signal,
        "reward": float(row.reward),
        "exposure": row.exposure,
        "cohort": row.cohort,
        "share": 1 / row.cohort,
        "at": row.at.isoformat(),
    }


def _rate(band: Band, record: Record, account_id: UUID | None) -> float:
    """The band's loss rate: measured in this store without the judged lesson, or the reference system's."""
    if not conf.current().live_bands:
        return band.prior
    measured = BandRate.objects.filter(scoped(account_id), lower=band.lower).first()
    if measured is None:
        return band.prior
    return rate_without(
        band=band,
        losses=measured.losses,
        scored=measured.scored,
        own_losses=record.losses,
        own_scored=record.scored,
    )
