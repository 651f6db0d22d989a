"""Scheduled jobs leave a trace: when each last ran, and what it did."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone

from memory.models import JobRun


@contextmanager
def recorded(job: str) -> Iterator[dict[str, Any]]:
    """Records a run; what the body puts into the dict are its figures. A failure is recorded and raised."""
    run = JobRun.objects.create(job=job)
    figures: dict[str, Any] = {}
    outcome = "failed"
    try:
        yield figures
        outcome = "done"
    finally:
        JobRun.objects.filter(pk=run.pk).update(finished_at=timezone.now(), outcome=outcome, figures=figures)
