"""Background work. Each task takes an id, calls one service, and may run twice. The sweeps find what no message told.

Queues: `credit` is fast and never waits for a model; `maintenance` may; `distill` waits for a language model.
"""

from uuid import UUID

import structlog
from celery import Task, shared_task
from django.db import OperationalError, transaction
from django.utils import timezone

from memory import conf
from memory.distillers import DistillerUnavailable
from memory.embedding.active import usable_space
from memory.errors import EmbeddingUnavailable
from memory.services import (
    bands,
    contradiction,
    distilling,
    idempotency,
    jobs,
    judging,
    pruning,
    quarantine,
    retention,
    review_priority,
    space,
    staleness,
    standing,
    summary,
    tombstone,
)
from memory.services import credit as crediting
from memory.services.erasure import statistics, sync_ledger
from memory.services.webhooks import review_age, sending

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
def credit_sweep() -> None:
    """Credits what was not announced."""
    with jobs.recorded("credit_sweep") as figures:
        figures["standings_of_another_policy"] = standing.follow_policy()
        figures["interactions"] = crediting.sweep()


@shared_task(bind=True, **RETRY)
def distill_interaction(self: Task, interaction_id: str) -> None:
    """Distils one interaction; if the distiller is away, the sweep tries again."""
    try:
        distilling.distill(UUID(interaction_id), self.request.id or "")
    except DistillerUnavailable as refusal:
        log.warning("distiller_unavailable", reason=refusal.detail)


@shared_task(bind=True, **RETRY)
def distill_sweep(self: Task) -> None:
    """Distils what was not announced, failed for a while, or was left by a worker that died."""
    with jobs.recorded("distill_sweep") as figures:
        try:
            figures["interactions"] = distilling.sweep(self.request.id or "")
        except DistillerUnavailable as refusal:
            figures["unavailable"] = refusal.detail


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
def maintenance_summaries() -> None:
    """Summarises sessions that were worked in."""
    with jobs.recorded(summary.JOB) as figures:
        figures.update(summary.summarise_due().figures())


@shared_task(**RETRY)
def maintenance_daily() -> None:
    """Band rates, expired idempotency records, and the clock where it is on."""
    with jobs.recorded("daily") as figures:
        figures["erasures_added_to_the_ledger"] = sync_ledger()
        figures["statistics_renewed"] = statistics.renew(timezone.now())
        figures["expired_answers"] = idempotency.forget_expired()
        figures["retention"] = retention.apply_retention(timezone.now())
        figures["bands"] = bands.measure()
        with transaction.atomic():
            figures["freed_by_clock"] = quarantine.lift_by_clock(
                timezone.now(), conf.current().quarantine_cooldown_hours
            )


@shared_task(**RETRY)
def maintenance_contradictions() -> None:
    """Flags lessons that may contradict each other. Decides nothing."""
    with jobs.recorded(contradiction.JOB) as figures:
        try:
            figures.update(contradiction.detect().figures())
        except EmbeddingUnavailable as refusal:
            figures["unavailable"] = refusal.detail


@shared_task(**RETRY)
def maintenance_staleness() -> None:
    """Asks about lessons that once did well and have not been judged for long. Changes none."""
    with jobs.recorded("staleness") as figures:
        figures.update(staleness.run())


@shared_task(**RETRY)
def maintenance_review_queue() -> None:
    """Wakes the questions that were snoozed until now, and weighs every open one anew. Answers none."""
    with jobs.recorded("review_queue") as figures:
        figures.update(review_priority.run())
        figures["webhooks_told"] = review_age.tell(timezone.now())


@shared_task(**RETRY)
def maintenance_judging() -> None:
    """Asks for the verdicts that would change most, and about those that differ. Judges nothing."""
    with jobs.recorded(judging.JOB) as figures:
        figures.update(judging.run())


@shared_task(**RETRY)
def maintenance_prune_plan() -> None:
    """Plans what could be merged, and deletes what can no longer be undone. Merges nothing: a person applies."""
    with jobs.recorded("prune_plan") as figures:
        figures.update(pruning.forget_old())
        try:
            figures["tombstones_embedded"] = tombstone.follow(usable_space())
            figures.update(pruning.run())
        except EmbeddingUnavailable as refusal:
            figures["unavailable"] = refusal.detail


@shared_task(bind=True, **RETRY)
def maintenance_webhook(self: Task, delivery_id: str) -> None:
    """Sends one new delivery of a webhook; what fails, the sweep tries again."""
    sending.send_announced(UUID(delivery_id), self.request.id or "")


@shared_task(bind=True, **RETRY)
def maintenance_webhook_sweep(self: Task) -> None:
    """Sends what was not announced, failed for a while, or was left by a worker that died."""
    with jobs.recorded("webhook_sweep") as figures:
        figures.update(sending.sweep(self.request.id or ""))


# Which task does the work that a service announces: nudge name -> task.
TASK_OF = {
    "credit": credit_interaction.name,
    "distill": distill_interaction.name,
    "embed": maintenance_embed.name,
    "webhook": maintenance_webhook.name,
}
