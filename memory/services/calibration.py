"""Thresholds for the active space: proposed from evidence, applied by somebody, journalled, and taken back."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory.embedding.active import usable_space
from memory.errors import Conflict, Invalid, NotFound
from memory.models import Calibration, EmbeddingSpace, JobRun
from memory.rules import calibration as rules
from memory.rules.calibration import Expected, Gate, Question
from memory.rules.relevance import SupportGate, Thresholds
from memory.services.labelled import Evidence
from memory.services.measuring import K, Measured, Tell, best_cosines, measure

JOB: Final = "calibrate"
NO_DATA: Final = "0" * 64  # where no questions stand behind a change
COSINES, SUPPORTS = 0.05, 0.02  # width of a bin of their distributions
REASON_LIMIT: Final = 1000  # characters
Values = Mapping[str, Any]  # min_similarity, uncorroborated_min_similarity, gate: as a space has them


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """How often a score occurs, in bins of one width; the first and the last bin are empty."""

    name: str  # tasks, off_domain, support_tasks, support_off_domain
    n: int
    edges: tuple[float, ...]  # left edges
    shares: tuple[float, ...]  # of n, in each bin


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What the evidence says about the thresholds of a space."""

    space: str  # its id
    present: Values
    proposed: Values | None  # None: too little evidence, or no threshold tells the two kinds apart
    why_not: str  # in words, where nothing is proposed
    present_does: Expected  # to these questions
    proposed_does: Expected | None  # cross-validated: to questions that it was not fitted to
    basis: Mapping[str, int]  # questions by how they are known
    other_topics: int  # tasks beside lessons of other topics, among the off-domain questions
    missing: tuple[int, int]  # tasks and off-domain questions that are wanting for a fit
    data_digest: str
    distributions: tuple[Distribution, ...]

    @property
    def version(self) -> str:
        """What the thresholds were when this was made."""
        return version_of(self.present)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(told: Mapping[str, Any]) -> Proposal:
    """The proposal that `to_json` told."""
    distributions = tuple(
        Distribution(**{**each, "edges": tuple(each["edges"]), "shares": tuple(each["shares"])})
        for each in told["distributions"]
    )
    does = {name: Expected(**told[name]) if told[name] else None for name in ("present_does", "proposed_does")}
    return Proposal(**{**told, **does, "missing": tuple(told["missing"]), "distributions": distributions})


def values_of(space: EmbeddingSpace) -> dict[str, Any]:
    """The part of a space that is calibrated."""
    return {
        "min_similarity": space.min_similarity,
        "uncorroborated_min_similarity": space.uncorroborated_min_similarity,
        "gate": space.gate,
    }


def version_of(values: Values) -> str:
    """Digest of thresholds: equal exactly if they are."""
    return hashlib.sha256(json.dumps(_checked(values), sort_keys=True).encode()).hexdigest()


def _gate(values: Values) -> Gate:
    """Raises ValueError where the thresholds are out of order or range."""
    thresholds = Thresholds(
        min_similarity=values["min_similarity"], uncorroborated_min_similarity=values["uncorroborated_min_similarity"]
    )
    return Gate(thresholds=thresholds, supported=SupportGate(**values["gate"]) if values["gate"] else None)


def _checked(values: Values) -> dict[str, Any]:
    """As a space stores them. Raises Invalid."""
    try:
        gate = _gate(values)
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"These are no thresholds: {error}") from None
    return values_of_gate(gate)


def values_of_gate(gate: Gate) -> dict[str, Any]:
    """A gate as a space stores it."""
    return {**asdict(gate.thresholds), "gate": asdict(gate.supported) if gate.supported else None}


def propose(evidence: Evidence, tell: Tell = lambda done, total: None) -> Proposal:
    """Measures, fits and cross-validates; the run is recorded and the proposal kept with it.

    Raises EmbeddingUnavailable.
    """
    space, began = usable_space(), timezone.now()
    made = _propose(space, evidence, measure(evidence, space, tell))
    JobRun.objects.create(job=JOB, started_at=began, finished_at=timezone.now(), outcome="done", figures=made.to_json())
    return made


def _propose(space: EmbeddingSpace, evidence: Evidence, measured: Measured) -> Proposal:
    off_domain = (*measured.off_domain, *measured.other_topics)
    present, missing = values_of(space), rules.missing(len(measured.tasks), len(off_domain))
    proposed, does, why_not = None, None, ""
    if any(missing):
        why_not = "Too little evidence for a fit."
    else:
        try:
            fitted = rules.fit(measured.tasks, off_domain)
            does = rules.cross_validated(measured.tasks, off_domain, K)
            kept = fitted.supported or _gate(present).supported  # a small store keeps what a larger one will need
            proposed = values_of_gate(Gate(thresholds=fitted.thresholds, supported=kept))
        except ValueError as error:
            why_not, does = str(error), None
    return Proposal(
        space=str(space.pk),
        present=present,
        proposed=proposed,
        why_not=why_not,
        present_does=rules.expect(_gate(present), measured.tasks, off_domain, K),
        proposed_does=does,
        basis=evidence.basis,
        other_topics=len(measured.other_topics),
        missing=missing,
        data_digest=evidence.digest,
        distributions=_distributions(measured),
    )


def _distributions(measured: Measured) -> tuple[Distribution, ...]:
    off_domain = (*measured.off_domain, *measured.other_topics)
    return (
        distribution("tasks", best_cosines(measured.tasks, fitting=True), COSINES),
        distribution("off_domain", best_cosines(off_domain), COSINES),
        distribution("support_tasks", supports(measured.tasks), SUPPORTS),
        distribution("support_off_domain", supports(off_domain), SUPPORTS),
    )


def supports(questions: Sequence[Question]) -> list[float]:
    """The supports that are known."""
    return [question.support for question in questions if question.support is not None]


def distribution(name: str, scores: Sequence[float], width: float) -> Distribution:
    """The histogram of some scores in [-1, 1], with one empty bin at either end; no bins without scores."""
    places = [math.floor((score + 1) / width) for score in scores]
    bins = range(min(places) - 1, max(places) + 2) if places else range(0)
    return Distribution(
        name=name,
        n=len(scores),
        edges=tuple(round(place * width - 1, 6) for place in bins),
        shares=tuple(places.count(place) / len(scores) for place in bins),
    )


def latest_proposal(space: EmbeddingSpace) -> tuple[Proposal, JobRun] | None:
    """The newest proposal for the space, and the run that made it."""
    run = JobRun.objects.filter(job=JOB, outcome="done", figures__space=str(space.pk)).order_by("-started_at").first()
    return (from_json(run.figures), run) if run else None


def apply(
    space_id: UUID, values: Values, *, expected: str, actor: str, reason: str, data_digest: str = NO_DATA
) -> Calibration:
    """Sets a space's thresholds and journals before and after. Retrieval uses them from its next question on.

    `expected` is the `version_of` the thresholds that the person saw: of two who apply at once one wins. Raises
    Conflict where they are others by now, Invalid for values out of order or without effect, NotFound without such a
    space.
    """
    after = _checked(values)
    if not 1 <= len(reason.strip()) <= REASON_LIMIT:
        raise Invalid.field("reason", f"say in 1 to {REASON_LIMIT} characters why.")
    with transaction.atomic():
        space = EmbeddingSpace.objects.select_for_update().filter(pk=space_id).first()
        if space is None:
            raise NotFound("There is no such embedding space.")
        before = values_of(space)
        if version_of(before) != expected:
            raise Conflict(
                "The thresholds were changed meanwhile; nothing was applied.",
                {"expected_version": [version_of(before)]},
            )
        if before == after:
            raise Invalid("These are the thresholds in force already.")
        for name, value in after.items():
            setattr(space, name, value)
        space.calibrated_at = timezone.now()
        space.save(update_fields=[*after, "calibrated_at"])
        return Calibration.objects.create(
            space=space, before=before, after={**after, "reason": reason.strip()}, data_digest=data_digest, actor=actor
        )


def former(entry: Calibration, present: Values) -> dict[str, Any]:
    """The thresholds before an entry of the journal, complete: an entry names what it changed, and no more."""
    return _checked({**present, **{name: entry.before[name] for name in present if name in entry.before}})
