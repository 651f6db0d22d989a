"""Making a report: a constant number of queries, each an aggregate, whatever the size of the store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from memory.models.vocabulary import DistillationState, Exposure, LessonState
from memory.rules.health import Job, Record, Signs, judge
from memory.services.health import learning, store
from memory.services.health.report import HealthReport
from memory.services.health.view import View


def report(account_id: UUID | None = None, now: datetime | None = None) -> HealthReport:
    """How the store learns: an account's, or without one an operator's of the whole installation."""
    view = View(account_id=account_id, now=now or timezone.now())
    said = learning.verdicts(view)
    weeks, work = learning.weeks_and_work(view, said)
    jobs = store.jobs(view)
    figures = HealthReport(
        state="building",
        reasons=(),
        measured_at=view.now,
        since=view.since,
        classes=learning.classes(said),
        weeks=weeks,
        work=work,
        distillations=learning.funnel(view),
        lessons=store.lessons(view),
        quarantine=learning.quarantine(view),
        exposures=learning.exposures(view),
        bands=learning.bands(view),
        queues=store.queues(view),
        vectors=store.vectors(view),
        webhooks=store.webhooks(view),
        jobs=tuple(state for state, _ in jobs),
    )
    judgement = judge(_signs(figures, [job for _, job in jobs]))
    return replace(figures, state=judgement.state, reasons=judgement.reasons)


def _signs(figures: HealthReport, jobs: Sequence[Job]) -> Signs:
    """What the judgement reads of the figures."""
    waited = {queue.name: _hours_since(queue.oldest_at, figures.measured_at) for queue in figures.queues}
    return Signs(
        judged={row.source: Record(wins=row.wins, losses=row.losses) for row in figures.classes},
        in_service=sum(row.n for row in figures.lessons if row.state == LessonState.ACTIVE),
        settled=figures.work.settled,
        unjudged=figures.work.without_outcome,
        uncredited_hours=waited["credit"],
        distillation_hours=waited["distillation"],
        failed_distillations=sum(row.n for row in figures.distillations if row.state == DistillationState.FAILED),
        review_hours=waited["review"],
        upheld=figures.quarantine.upheld,
        overturned=figures.quarantine.overturned,
        exposures=sum(row.n for row in figures.exposures),
        kept_out=sum(row.n for row in figures.exposures if row.exposure == Exposure.WITHHELD_QUARANTINE),
        lessons=figures.vectors.lessons,
        without_vector=figures.vectors.missing,
        unlike_space=figures.vectors.tombstones_left_behind,
        webhook_hours=_hours_since(figures.webhooks.failing_since, figures.measured_at),
        webhooks_disabled=figures.webhooks.disabled,
        webhooks_failed=figures.webhooks.failed,
        jobs=jobs,
    )


def _hours_since(moment: datetime | None, now: datetime) -> float:
    return store.hours(now - moment) if moment else 0.0
