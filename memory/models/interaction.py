"""An interaction and the outcomes that were reported on it."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField

from memory.models.base import Recorded, append_only, at_least, between, not_empty, one_of, together
from memory.models.lesson import EmbeddingSpace
from memory.models.scope import Account, ApiKey, Project
from memory.models.session import Session
from memory.models.vocabulary import OutcomeSource, Signal


class Interaction(Recorded):
    """One piece of work of an agent: the task, what was handed out for it, and what the agent answered."""

    account = models.ForeignKey(Account, models.PROTECT, db_index=False)
    project = models.ForeignKey(Project, models.PROTECT, null=True, blank=True)
    project_explicit = models.BooleanField(help_text="The request named the project itself.")
    session = models.ForeignKey(Session, models.PROTECT, null=True, blank=True)
    task = models.TextField()
    retrieved_context = models.TextField(blank=True)
    response = models.TextField(null=True, blank=True)
    tier = models.CharField(max_length=40, blank=True)
    model = models.CharField(max_length=200, blank=True)
    api_key = models.ForeignKey(ApiKey, models.PROTECT)
    tokens_in = models.IntegerField(null=True, blank=True)
    tokens_out = models.IntegerField(null=True, blank=True)
    token_source = models.CharField(max_length=40, blank=True)
    task_embedding = HalfVectorField(null=True, blank=True)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, null=True, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)

    class Meta:
        db_table = "interaction"
        constraints = [
            not_empty("interaction", "task"),
            at_least("interaction", "tokens_in", 0),
            at_least("interaction", "tokens_out", 0),
            models.UniqueConstraint(
                fields=["account", "idempotency_key"],
                name="interaction_account_idempotency_key_unique",
                condition=Q(idempotency_key__isnull=False),
            ),
            together("interaction", "embedding", ("task_embedding", "space")),
        ]
        # Every list is of one account, newest first; UUIDv7 ids are in the order of creation.
        indexes = [models.Index(fields=["account", "-id"], name="interaction_account_newest")]

    def __str__(self) -> str:
        return self.task[:80]


class Outcome(Recorded):
    """What one source said about an interaction. Every word stays; the latest of a source counts."""

    interaction = models.ForeignKey(Interaction, models.PROTECT, db_index=False)
    source = models.CharField(max_length=16, choices=OutcomeSource.choices)
    sequence = models.IntegerField()
    signal = models.CharField(max_length=16, choices=Signal.choices)
    reward = models.DecimalField(max_digits=3, decimal_places=2)
    api_key = models.ForeignKey(ApiKey, models.PROTECT, null=True, blank=True, db_index=False)
    judge = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, db_index=False)
    detail = models.TextField(blank=True)
    credited_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "outcome"
        constraints = [
            one_of("outcome", "source", OutcomeSource.values),
            one_of("outcome", "signal", Signal.values),
            between("outcome", "reward", -1, 1),
            at_least("outcome", "sequence", 1),
            models.UniqueConstraint(
                fields=["interaction", "source", "sequence"], name="outcome_interaction_source_sequence_unique"
            ),
        ]
        # The queue of what is still to credit: the sweep reads nothing else.
        indexes = [
            models.Index(fields=["created_at"], name="outcome_uncredited", condition=Q(credited_at__isnull=True)),
        ]
        triggers = [append_only("outcome", may_change="credited_at")]

    def __str__(self) -> str:
        return f"{self.signal} ({self.source})"
