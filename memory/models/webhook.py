"""Webhooks: who wants to hear of what, and the durable queue of what is told them."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.base import SHA256, Recorded, at_least, matches, not_empty, one_of, together
from memory.models.leased import Leased, held_while_claimed
from memory.models.scope import Account
from memory.models.vocabulary import TERMINAL_DELIVERY, AlertState, DeliveryState, DisabledBecause, WebhookEvent

#: What an endpoint can choose; a test is sent to whichever it is asked for.
CHOSEN_EVENTS = tuple(event.value for event in WebhookEvent if event != WebhookEvent.TEST)
_TERMINAL = Q(state__in=TERMINAL_DELIVERY)


class WebhookEndpoint(Recorded):
    """Where an account, or an operator for the whole installation, wants to be told of events.

    Its secret is nowhere: it follows from the installation's own and from the salt.
    """

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True)
    url = models.CharField(max_length=500)
    description = models.CharField(max_length=200, blank=True)
    events = ArrayField(models.CharField(max_length=24, choices=WebhookEvent.choices))
    salt = models.CharField(max_length=64)
    key_id = models.CharField(max_length=16, help_text="Of the installation's secret that the signing secret is of.")
    review_told = models.CharField(
        max_length=10, choices=AlertState.choices, null=True, help_text="What was last said of the review queue's age."
    )
    failing_since = models.DateTimeField(null=True, help_text="The first failure since the last delivery.")
    delivered_at = models.DateTimeField(null=True, help_text="When it last took a delivery.")
    disabled_at = models.DateTimeField(null=True)
    disabled_because = models.CharField(max_length=10, choices=DisabledBecause.choices, null=True)

    class Meta:
        db_table = "webhook_endpoint"
        constraints = [
            not_empty("webhook_endpoint", "url"),
            models.CheckConstraint(
                name="webhook_endpoint_events_vocabulary",
                condition=Q(events__contained_by=list(CHOSEN_EVENTS)) & ~Q(events=[]),
                violation_error_message=f"events must be some of {', '.join(CHOSEN_EVENTS)}.",
            ),
            matches("webhook_endpoint", "salt", SHA256, "32 bytes in hexadecimal"),
            one_of("webhook_endpoint", "review_told", AlertState.values),
            one_of("webhook_endpoint", "disabled_because", DisabledBecause.values),
            together("webhook_endpoint", "disabled", ("disabled_at", "disabled_because")),
        ]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(Recorded, Leased):
    """One event on its way to one endpoint. Only the holder of the token may record how it went."""

    endpoint = models.ForeignKey(WebhookEndpoint, models.CASCADE)
    event = models.CharField(max_length=24, choices=WebhookEvent.choices)
    subjects = ArrayField(models.UUIDField(), help_text="Every id in the body: an erasure looks here.")
    body = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=DeliveryState.choices)
    next_attempt_at = models.DateTimeField(db_default=Now())
    last_status = models.IntegerField(null=True, help_text="HTTP status of the latest answer.")
    last_error = models.CharField(max_length=300, blank=True)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "webhook_delivery"
        constraints = [
            one_of("webhook_delivery", "event", WebhookEvent.values),
            one_of("webhook_delivery", "state", DeliveryState.values),
            at_least("webhook_delivery", "attempts", 0),
            *held_while_claimed("webhook_delivery"),
            models.CheckConstraint(
                name="webhook_delivery_terminal_is_complete",
                condition=(_TERMINAL & Q(completed_at__isnull=False)) | (~_TERMINAL & Q(completed_at__isnull=True)),
                violation_error_message="completed_at belongs to terminal states, and to each.",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="webhook_delivery_queue", condition=Q(state="pending")),
            models.Index(fields=["lease_expires_at"], name="webhook_delivery_leases", condition=Q(state="claimed")),
            models.Index(
                fields=["completed_at"], name="webhook_delivery_done", condition=Q(completed_at__isnull=False)
            ),
            GinIndex(fields=["subjects"], name="webhook_delivery_subjects"),
        ]

    def __str__(self) -> str:
        return f"{self.event} ({self.state})"
