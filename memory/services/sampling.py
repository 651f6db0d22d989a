"""Who is let through and who is held back: the coins and samples of the policy in force, for one interaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memory import conf
from memory.models.vocabulary import Exposure
from memory.rules.probation import (
    ProbationConstants,
    admits_reference,
    admits_trial,
    counted_evidence,
    probation_probability,
    withheld_by_coin,
    withheld_share,
)
from memory.search import Candidate
from memory.services.task_digest import task_digest


class Sampling(Protocol):
    """Deterministic for a lesson and an interaction, so that a decision can be checked afterwards."""

    def admits(self, candidate: Candidate) -> bool:
        """Whether probation lets this quarantined lesson through."""

    def withholds(self, candidate: Candidate) -> bool:
        """Whether the coin leaves this lesson, which is in service, out."""

    def probability(self, candidate: Candidate, exposure: Exposure) -> float:
        """How probable it was that what happened to the candidate would happen, in (0, 1]."""


def _hours(since: datetime | None, now: datetime) -> float:
    """Hours since a moment; endless if there was none, never negative."""
    return float("inf") if since is None else max(0.0, (now - since).total_seconds() / 3600)


@dataclass(frozen=True, kw_only=True)
class ReferenceSampling:
    """A fixed share of tasks lets a quarantined lesson through, some time after its last loss; no coin.

    The pause counts from the quarantine where that came later: a person may quarantine a lesson that never lost.
    """

    digest: str  # of the task
    now: datetime
    constants: ProbationConstants

    def admits(self, candidate: Candidate) -> bool:
        return admits_reference(
            lesson=candidate.lesson_id,
            task_digest=self.digest,
            hours_since_loss=self._paused(candidate),
            after_hours=self.constants.after_hours,
            share=self.constants.share,
        )

    def withholds(self, candidate: Candidate) -> bool:
        return False

    def probability(self, candidate: Candidate, exposure: Exposure) -> float:
        if candidate.state != "quarantined":
            return 1.0
        waited = self._paused(candidate) >= self.constants.after_hours
        share = self.constants.share if waited else 0.0
        return share if exposure == Exposure.PROBATION else 1 - share

    def _paused(self, candidate: Candidate) -> float:
        """Hours without a sample so far."""
        return min(_hours(candidate.last_loss_at, self.now), _hours(candidate.quarantined_at, self.now))


@dataclass(frozen=True, kw_only=True)
class TrialSampling:
    """A lesson on trial is left out as often as it probably does harm; of a quarantined one there is a sample.

    Wins widen the sample, and losses narrow it.
    """

    interaction: UUID
    now: datetime
    constants: ProbationConstants
    trial_odds: float  # from which a lesson is on trial

    def admits(self, candidate: Candidate) -> bool:
        return admits_trial(
            lesson=candidate.lesson_id,
            interaction=self.interaction,
            hours_since_entry=_hours(candidate.quarantined_at, self.now),
            d=candidate.d or 0.0,
            constants=self.constants,
        )

    def withholds(self, candidate: Candidate) -> bool:
        return candidate.on_trial and withheld_by_coin(
            lesson=candidate.lesson_id, interaction=self.interaction, share=self._withheld(candidate)
        )

    def probability(self, candidate: Candidate, exposure: Exposure) -> float:
        if candidate.state == "quarantined":
            waited = _hours(candidate.quarantined_at, self.now) >= self.constants.after_hours
            share = probation_probability(candidate.d or 0.0, self.constants) if waited else 0.0
            return share if exposure == Exposure.PROBATION else 1 - share
        if not candidate.on_trial:
            return 1.0
        withheld = self._withheld(candidate)
        return withheld if exposure == Exposure.WITHHELD_TRIAL else 1 - withheld

    def _withheld(self, candidate: Candidate) -> float:
        """The share of a lesson on trial that is left out, by its ledger as the last evaluation left it."""
        counted = counted_evidence(candidate.s or 0.0, released_s=candidate.released_s, trial_odds=self.trial_odds)
        return withheld_share(counted, self.constants)


def sampling(interaction: UUID, task: str, now: datetime) -> Sampling:
    """The policy's sampling for one interaction."""
    settings = conf.current()
    constants = ProbationConstants(after_hours=settings.probation_after_hours, share=settings.probation_share)
    if settings.trust_policy == "reference":
        return ReferenceSampling(digest=task_digest(task), now=now, constants=constants)
    return TrialSampling(interaction=interaction, now=now, constants=constants, trial_odds=settings.trial_odds)
