"""What the store holds and what waits in it: lessons, queues, vectors, scheduled jobs."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from memory.models.vocabulary import LessonState
from memory.rules.health import DEFAULTS, Job, standing_of_job
from memory.services.health.report import JobState, LessonAges, Queue, Vectors, Webhooks
from memory.services.health.view import View

EMBEDDED_WITHIN = timedelta(minutes=5)  # a new lesson gets its vector in seconds
DAY = 24 * 3600.0
# When an item of a queue is late: the age from which the judgement minds it. Contradictions wait as review items.
LATE = {
    "credit": DEFAULTS.uncredited_hours[0],
    "distillation": DEFAULTS.distillation_hours[0],
    "review": DEFAULTS.review_hours[0],
    "contradiction": DEFAULTS.review_hours[0],
}


def lessons(view: View) -> tuple[LessonAges, ...]:
    """Lessons in every state, by age."""
    rows = view.fetch(
        f"""
        SELECT l.state, count(*), count(*) FILTER (WHERE l.created_at > %(week)s),
            count(*) FILTER (WHERE l.created_at <= %(week)s AND l.created_at > %(month)s),
            count(*) FILTER (WHERE l.created_at <= %(month)s AND l.created_at > %(quarter)s),
            count(*) FILTER (WHERE l.created_at <= %(quarter)s),
            count(*) FILTER (WHERE s.on_trial AND l.state = 'active')
        FROM lesson l LEFT JOIN lesson_standing s ON s.lesson_id = l.id WHERE {view.visible("l")} GROUP BY 1
        """,
        week=view.now - timedelta(weeks=1),
        month=view.now - timedelta(weeks=4),
        quarter=view.now - timedelta(weeks=12),
    )
    found = {state: figures for state, *figures in rows}
    names = ("n", "week", "month", "quarter", "older", "on_trial")
    return tuple(
        LessonAges(state=state, **dict(zip(names, found.get(state, (0,) * 6), strict=True)))
        for state in LessonState.values
    )


def queues(view: View) -> tuple[Queue, ...]:
    """How much waits, and since when. Each part reads the partial index of its queue."""
    review = view.visible("r") if view.account_id is None else f"({view.visible('r')} OR r.account_id = %(account)s)"
    distillation = "lesson_distillation d JOIN interaction i ON i.id = d.interaction_id"
    waiting = {
        "credit": f"SELECT o.created_at FROM outcome o JOIN interaction i ON i.id = o.interaction_id "
        f"WHERE o.credited_at IS NULL AND {view.own}",
        "distillation": f"SELECT d.created_at FROM {distillation} "
        f"WHERE d.state IN ('pending', 'retryable') AND {view.own} UNION ALL "
        f"SELECT d.created_at FROM {distillation} WHERE d.state = 'claimed' AND {view.own}",
        "review": f"SELECT r.created_at FROM review_item r WHERE r.status = 'open' AND {review}",
        "contradiction": f"SELECT c.created_at FROM contradiction c WHERE c.verdict IS NULL AND {view.visible('c')}",
    }
    parts = [
        f"SELECT '{name}' AS name, count(*), count(*) FILTER (WHERE created_at < %({name})s), min(created_at) "
        f"FROM ({rows}) AS {name}"
        for name, rows in waiting.items()
    ]
    late = {name: view.now - timedelta(hours=hours) for name, hours in LATE.items()}
    found = view.fetch(" UNION ALL ".join(parts), **late)
    return tuple(Queue(name=name, waiting=n, late=overdue, oldest_at=oldest) for name, n, overdue, oldest in found)


def vectors(view: View) -> Vectors:
    """Whether every lesson and every tombstone can be compared by meaning."""
    ((space, calibrated_at, total, missing, elsewhere, left_behind),) = view.fetch(
        f"""
        SELECT s.model || ' ' || s.revision || ' (' || s.dimension || ')', s.calibrated_at,
            (SELECT count(*) FROM lesson l WHERE {view.visible("l")}),
            (SELECT count(*) FROM lesson l WHERE {view.visible("l")} AND l.created_at <= %(embedded)s AND NOT EXISTS (
                SELECT 1 FROM lesson_embedding e WHERE e.lesson_id = l.id AND e.space_id = s.id)),
            (SELECT count(*) FROM lesson_embedding e
                WHERE {view.visible("e")} AND e.space_id IS DISTINCT FROM s.id),
            (SELECT count(*) FROM lesson_tombstone t
                WHERE {view.visible("t")} AND t.space_id IS DISTINCT FROM s.id)
        FROM (SELECT) one LEFT JOIN embedding_space s ON s.is_active
        """,
        embedded=view.now - EMBEDDED_WITHIN,
    )
    return Vectors(
        space=space,
        calibrated_at=calibrated_at,
        lessons=total,
        missing=missing,
        in_other_spaces=elsewhere,
        tombstones_left_behind=left_behind,
    )


def webhooks(view: View) -> Webhooks:
    """Endpoints by how they do, and what waits for them."""
    own = "true" if view.account_id is None else "e.account_id = %(account)s"
    ((on, failing, since, disabled, waiting, failed),) = view.fetch(
        f"""
        SELECT count(*) FILTER (WHERE e.disabled_at IS NULL),
            count(*) FILTER (WHERE e.disabled_at IS NULL AND e.failing_since IS NOT NULL),
            min(e.failing_since) FILTER (WHERE e.disabled_at IS NULL),
            count(*) FILTER (WHERE e.disabled_because IN ('failing', 'gone')),
            coalesce(sum(d.waiting), 0)::bigint, coalesce(sum(d.failed), 0)::bigint
        FROM webhook_endpoint e CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE r.completed_at IS NULL) AS waiting,
                count(*) FILTER (WHERE r.state = 'failed' AND r.completed_at >= %(since)s) AS failed
            FROM webhook_delivery r WHERE r.endpoint_id = e.id
        ) d WHERE {own}
        """
    )
    return Webhooks(
        endpoints=on, failing=failing, failing_since=since, disabled=disabled, waiting=waiting, failed=failed
    )


def scheduled_jobs() -> dict[str, float]:
    """Every job of the schedule with the seconds between its runs.

    A job is named like its task, without the queue `maintenance`. What runs by the calendar is taken to run once a day.
    """
    jobs = {}
    schedule: Mapping[str, Mapping[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    for entry in schedule.values():
        name = entry["task"].rpartition(".")[2].removeprefix("maintenance_")
        every = entry["schedule"]
        if isinstance(every, timedelta):
            every = every.total_seconds()
        jobs[name] = float(every) if isinstance(every, int | float) else DAY
    return jobs


def jobs(view: View) -> tuple[tuple[JobState, Job], ...]:
    """Every scheduled job with its last run, and how punctual it is."""
    schedule = scheduled_jobs()
    rows = view.fetch(
        """
        SELECT wanted.job, newest.started_at, newest.outcome, finished.outcome, good.started_at,
            (SELECT min(created_at) FROM account)
        FROM unnest(%(jobs)s::text[]) AS wanted(job)
        LEFT JOIN LATERAL (SELECT r.started_at, r.outcome FROM job_run r WHERE r.job = wanted.job
            ORDER BY r.started_at DESC LIMIT 1) newest ON true
        LEFT JOIN LATERAL (SELECT r.outcome FROM job_run r WHERE r.job = wanted.job AND r.finished_at IS NOT NULL
            ORDER BY r.started_at DESC LIMIT 1) finished ON true
        LEFT JOIN LATERAL (SELECT r.started_at FROM job_run r WHERE r.job = wanted.job AND r.outcome = 'done'
            ORDER BY r.started_at DESC LIMIT 1) good ON true
        """,
        jobs=list(schedule),
    )
    return tuple(_job(row[:5], schedule, view.now, row[5] or view.now) for row in sorted(rows, key=lambda row: row[0]))


def _job(
    row: tuple[Any, ...],
    schedule: Mapping[str, float],
    now: datetime,
    made: datetime,
) -> tuple[JobState, Job]:
    name, started_at, outcome, last_finished, done_at = row
    job = Job(
        name=name,
        every_hours=schedule[name] / 3600,
        age_hours=hours(now - (done_at or made)),
        ran=done_at is not None,
        failed=last_finished == "failed",
    )
    state = JobState(
        job=name,
        every_seconds=schedule[name],
        standing=standing_of_job(job),
        started_at=started_at,
        outcome=outcome or "",
        done_at=done_at,
    )
    return state, job


def hours(span: timedelta) -> float:
    """A span in hours, never negative: clocks differ."""
    return max(0.0, span.total_seconds() / 3600)
