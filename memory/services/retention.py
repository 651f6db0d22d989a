"""How long each kind of row is kept. What trust rests on (outcomes, exposures, sums, tombstones) is never aged out."""

from datetime import datetime, timedelta

from memory import conf
from memory.models import Interaction, JobRun, WebhookDelivery, WriteRefusal

BATCH = 2000  # rows in one statement


def apply_retention(now: datetime) -> dict[str, int]:
    """Applies every limit that is set; returns rows changed or deleted, by kind. 0 days keeps for ever."""
    settings = conf.current()
    done: dict[str, int] = {}
    if settings.retain_texts_days:
        done["texts"] = _empty_texts(now - timedelta(days=settings.retain_texts_days))
    if settings.retain_refusals_days:
        old = WriteRefusal.objects.filter(created_at__lt=now - timedelta(days=settings.retain_refusals_days))
        done["refusals"] = old.delete()[0]
    if settings.retain_job_runs_days:
        runs = JobRun.objects.filter(started_at__lt=now - timedelta(days=settings.retain_job_runs_days))
        done["job_runs"] = runs.delete()[0]
    if settings.retain_deliveries_days:
        ended = WebhookDelivery.objects.filter(completed_at__lt=now - timedelta(days=settings.retain_deliveries_days))
        done["webhook_deliveries"] = ended.delete()[0]
    return done


def _empty_texts(before: datetime) -> int:
    """Empties what agents answered and what was pasted into their prompts; the evidence of the work stays."""
    emptied = 0
    while True:
        old = Interaction.objects.filter(created_at__lt=before).exclude(response=None, retrieved_context="")
        batch = list(old.order_by("created_at").values_list("pk", flat=True)[:BATCH])
        if not batch:
            return emptied
        emptied += Interaction.objects.filter(pk__in=batch).update(response=None, retrieved_context="")
