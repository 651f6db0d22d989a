"""Background work. Each task takes an id, calls one service, and may run twice. The sweeps find what no message told.

Queues: `credit` is fast and never waits for a model; `maintenance` may.
"""

from uuid import UUID

import structlog
from celery import shared_task
from django.db import OperationalError, transaction
from django.utils import timezone

from memory import conf
from memory.errors import EmbeddingUnavailable
from memory.services import bands, idempotency, jobs, quarantine, space
from memory.services import credit as crediting

log = structlog.get_logger(__name__)
# A database that restarts comes back; everything else is a fault to be seen.
RETRY = {
    "autoretry_for": (OperationalError,),
    "retry_backoff": 1,
    "retry_backoff_max": 60,
    "retry_jitter": True,
    "max_retries": 5,
}


@shared_task(**RETRY)
def credit_interaction(interaction_id: str) -> None:
    """Credits one interaction."""
    crediting.credit(UUID(interaction_id))


@shared_task(**RETRY)
def credit_sweep() -> int:
    """Credits what was not announced."""
    with jobs.recorded("credit_sweep") as figures:
        figures["interactions"] = crediting.sweep()
    return int(figures["interactions"])


@shared_task(**RETRY)
def maintenance_embed(lesson_id: str) -> None:
    """Embeds one new lesson; if the model is away, the sweep tries again."""
    try:
        space.embed_one(UUID(lesson_id))
    except EmbeddingUnavailable as refusal:
        log.warning("embedding_unavailable", reason=refusal.detail)


@shared_task(**RETRY)
def maintenance_embed_sweep() -> None:
    """Embeds lessons that have no vector in the active space."""
    with jobs.recorded("embed_sweep") as figures:
        try:
            figures["embedded"] = space.embed_pending()
        except EmbeddingUnavailable as refusal:
            figures["unavailable"] = refusal.detail


@shared_task(**RETRY)
def maintenance_daily() -> None:
    """Band rates, expired idempotency records, and the clock where it is on."""
    with jobs.recorded("daily") as figures:
        figures["expired_answers"] = idempotency.forget_expired()
        figures["bands"] = bands.measure()
        with transaction.atomic():
            figures["freed_by_clock"] = quarantine.lift_by_clock(
                timezone.now(), conf.current().quarantine_cooldown_hours
            )


# Which task does the work that a service announces: nudge name -> task.
TASK_OF = {"credit": credit_interaction.name, "embed": maintenance_embed.name}
