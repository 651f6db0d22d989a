"""The health report in Prometheus' text format, for whoever watches many stores at once.

Every figure is read from the database when it is asked for, so it is the same whichever process answers, and survives
each of them. Classes of evidence keep their label `source` and are never added up. No label names an account, a lesson
or a text: the number of series does not grow with the store.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory.services.health import HealthReport, report

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
STATES: Final = ("building", "healthy", "watch", "attention")
WINDOW: Final = "of the work begun in the last four weeks"


def exposition(made: HealthReport | None = None) -> bytes:
    """The whole page; `made` is a report that was made before, else one is made now."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(made or report()))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, made: HealthReport) -> None:
        self._made = made

    def collect(self) -> Iterator[Metric]:
        for part in (_health, _work, _lessons, _quarantine, _exposures, _queues, _vectors, _webhooks, _jobs):
            yield from part(self._made)


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"sonder_{name}", words, labels=labels)


def _single(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"sonder_{name}", words, value=value)


def _health(made: HealthReport) -> Iterator[Metric]:
    state = _gauge("health", "1 for the state that the store is in, by its worst reason.", "state")
    for name in STATES:
        state.add_metric([name], float(made.state == name))
    reasons = _gauge("health_reason", "1 for each reason that speaks for its state.", "code", "state")
    for reason in made.reasons:
        reasons.add_metric([reason.code, reason.state], 1.0)
    yield from (state, reasons)


def _work(made: HealthReport) -> Iterator[Metric]:
    yield _single("interactions", f"Interactions {WINDOW}.", made.work.interactions)
    yield _single("interactions_settled", f"Those a day old or older, {WINDOW}.", made.work.settled)
    yield _single(
        "interactions_without_outcome", f"Settled ones that nobody judged, {WINDOW}.", made.work.without_outcome
    )
    outcomes = _gauge("outcomes", f"Latest words of each kind of judge {WINDOW}.", "source", "result")
    rate = _gauge(
        "win_rate", f"Share won by each kind of judge {WINDOW}, with its 95% Wilson interval.", "source", "bound"
    )
    for row in made.classes:
        for result, n in (("win", row.wins), ("loss", row.losses), ("retracted", row.retracted)):
            outcomes.add_metric([row.source, result], n)
        if row.win_rate is not None:
            for bound, value in (("estimate", row.win_rate), ("low", row.low), ("high", row.high)):
                rate.add_metric([row.source, bound], value)
    funnel = _gauge("distillations", f"Distillations {WINDOW}, by how they ended.", "state", "reason")
    for each in made.distillations:
        funnel.add_metric([each.state, each.reason or ""], each.n)
    yield from (outcomes, rate, funnel)


def _lessons(made: HealthReport) -> Iterator[Metric]:
    ages = _gauge("lessons", "Lessons by state and age.", "state", "age")
    trial = _single("lessons_on_trial", "Lessons for which a coin decides.", sum(row.on_trial for row in made.lessons))
    for row in made.lessons:
        for age, n in (("week", row.week), ("month", row.month), ("quarter", row.quarter), ("older", row.older)):
            ages.add_metric([row.state, age], n)
    scored = _gauge("band_scored", "Scored retrievals of lessons that were scored `from` times or more.", "from")
    losses = _gauge("band_loss_rate", "Their loss rate, as decisions use it.", "from")
    for band in made.bands:
        scored.add_metric([str(band.lower)], band.n)
        losses.add_metric([str(band.lower)], band.rate)
    yield from (ages, trial, scored, losses)


def _quarantine(made: HealthReport) -> Iterator[Metric]:
    events = _gauge("quarantines", "What happened to quarantines in the last four weeks.", "event")
    q = made.quarantine
    for name, n in (
        ("opened", q.opened),
        ("opened_by_reviewer", q.opened_by_reviewer),
        ("upheld", q.upheld),
        ("overturned", q.overturned),
        ("rehabilitated", q.rehabilitated),
        ("probation_loss", q.probation_losses),
    ):
        events.add_metric([name], n)
    yield events


def _exposures(made: HealthReport) -> Iterator[Metric]:
    exposures = _gauge("exposures", f"What became of lessons that fitted {WINDOW[3:]}.", "exposure")
    credited = _gauge("exposures_credited", "Those that somebody decided, by who did.", "exposure", "source", "result")
    for row in made.exposures:
        exposures.add_metric([row.exposure], row.n)
        for by in row.credited:
            credited.add_metric([row.exposure, by.source, "win"], by.wins)
            credited.add_metric([row.exposure, by.source, "loss"], by.losses)
    yield from (exposures, credited)


def _queues(made: HealthReport) -> Iterator[Metric]:
    waiting = _gauge("queue_waiting", "Work that waits.", "queue")
    late = _gauge("queue_late", "Work that waits longer than it ever should.", "queue")
    oldest = _gauge("queue_oldest_seconds", "Age of the oldest that waits; 0 where nothing does.", "queue")
    for queue in made.queues:
        waiting.add_metric([queue.name], queue.waiting)
        late.add_metric([queue.name], queue.late)
        age = (made.measured_at - queue.oldest_at).total_seconds() if queue.oldest_at else 0.0
        oldest.add_metric([queue.name], max(0.0, age))
    yield from (waiting, late, oldest)


def _vectors(made: HealthReport) -> Iterator[Metric]:
    vectors = made.vectors
    yield _single(
        "vectors_missing", "Lessons without a vector in the active space, five minutes old or older.", vectors.missing
    )
    yield _single("vectors_in_other_spaces", "Vectors that nothing compares any more.", vectors.in_other_spaces)
    yield _single("tombstones_without_vector", "Tombstones that refuse no paraphrase.", vectors.tombstones_left_behind)


def _webhooks(made: HealthReport) -> Iterator[Metric]:
    hooks = made.webhooks
    endpoints = _gauge("webhook_endpoints", "Endpoints of webhooks by how they do.", "state")
    sound = hooks.endpoints - hooks.failing
    for state, n in (("sound", sound), ("failing", hooks.failing), ("disabled", hooks.disabled)):
        endpoints.add_metric([state], n)
    yield endpoints
    yield _single("webhook_deliveries_waiting", "Deliveries of webhooks that wait.", hooks.waiting)
    yield _single("webhook_deliveries_failed", "Those given up in the last four weeks.", hooks.failed)


def _jobs(made: HealthReport) -> Iterator[Metric]:
    started = _gauge("job_started_timestamp_seconds", "When the last run began; 0: never.", "job")
    done = _gauge("job_done_timestamp_seconds", "When the last good run began; 0: never.", "job")
    every = _gauge("job_interval_seconds", "How often it should run.", "job")
    standing = _gauge("job_standing", "1 for how each job stands.", "job", "standing")
    for job in made.jobs:
        started.add_metric([job.job], _seconds(job.started_at))
        done.add_metric([job.job], _seconds(job.done_at))
        every.add_metric([job.job], job.every_seconds)
        standing.add_metric([job.job, job.standing], 1.0)
    yield from (started, done, every, standing)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
