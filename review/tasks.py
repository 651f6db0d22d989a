"""Background work of the human surface."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from memory.services import jobs
from review import digest as mails


@shared_task(autoretry_for=(OperationalError,), retry_backoff=1, retry_backoff_max=60, retry_jitter=True, max_retries=5)
def digest() -> None:
    """Mails those who want to hear of it how much waits."""
    with jobs.recorded(mails.JOB) as figures:
        figures.update(mails.run(timezone.now()))
