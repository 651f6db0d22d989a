"""The journals of running the store: refused writes, replayed requests, jobs, calibrations, operators, erasures."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from memory.models.base import ACTOR, SHA256, Recorded, SealedTrigger, append_only, matches, new_id, not_empty, one_of
from memory.models.lesson import NEXT_GENERATION, EmbeddingSpace
from memory.models.scope import Account
from memory.models.vocabulary import OperatorAction


class WriteRefusal(Recorded):
    """A lesson that was refused, by which path and why; never its text."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True)
    path = models.CharField(max_length=40)
    reason = models.CharField(max_length=24)
    digest = models.CharField(max_length=64, null=True, blank=True)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "write_refusal"
        constraints = [
            not_empty("write_refusal", "path"),
            not_empty("write_refusal", "reason"),
            matches("write_refusal", "digest", SHA256, "a SHA-256 digest"),
            matches("write_refusal", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class IdempotencyRecord(Recorded):
    """The first answer to a write, replayed to the same request with the same key."""

    account = models.ForeignKey(Account, models.CASCADE, db_index=False)
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    status = models.IntegerField(null=True)
    response = models.JSONField(null=True)
    names = ArrayField(models.UUIDField(), null=True, help_text="Every id in the response: an erasure looks here.")

    class Meta:
        db_table = "idempotency_record"
        constraints = [
            models.UniqueConstraint(fields=["account", "key"], name="idempotency_record_account_key_unique"),
            matches("idempotency_record", "body_digest", SHA256, "a SHA-256 digest"),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="idempotency_record_age"),
            GinIndex(fields=["names"], name="idempotency_record_names"),
        ]

    def __str__(self) -> str:
        return self.key


class JobRun(models.Model):
    """One run of a scheduled job."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    job = models.CharField(max_length=80)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=200, blank=True)
    figures = models.JSONField(default=dict)

    class Meta:
        db_table = "job_run"
        constraints = [not_empty("job_run", "job")]
        indexes = [models.Index(fields=["job", "-started_at"], name="job_run_newest")]

    def __str__(self) -> str:
        return f"{self.job}: {self.outcome or 'running'}"


class Calibration(Recorded):
    """A change of a space's thresholds, with the data it rested on."""

    space = models.ForeignKey(EmbeddingSpace, models.PROTECT)
    before = models.JSONField()
    after = models.JSONField()
    data_digest = models.CharField(max_length=64)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "calibration"
        constraints = [
            matches("calibration", "data_digest", SHA256, "a SHA-256 digest"),
            matches("calibration", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]
        triggers = [append_only("calibration")]

    def __str__(self) -> str:
        return f"{self.space} by {self.actor}"


class OperatorAct(Recorded):
    """What an operator did by hand, in codes and ids: no text is in it, so it outlives what it was about."""

    account = models.UUIDField(null=True, blank=True)
    action = models.CharField(max_length=24, choices=OperatorAction.choices)
    subject = models.UUIDField(help_text="The key, the interaction that is distilled, or the lesson.")
    detail = models.CharField(max_length=200, blank=True, default="")
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "operator_act"
        constraints = [
            one_of("operator_act", "action", OperatorAction.values),
            matches("operator_act", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]
        triggers = [append_only("operator_act")]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class ErasureRecord(Recorded):
    """Proof, without content, that an erasure ran."""

    kind = models.CharField(max_length=40)
    subject = models.UUIDField()
    counts = models.JSONField(default=dict)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "erasure_record"
        constraints = [
            not_empty("erasure_record", "kind"),
            matches("erasure_record", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]
        triggers = [
            append_only("erasure_record"),
            # Also where no lesson was erased: the vectors of its tasks are kept by those who searched with them.
            SealedTrigger(
                name="erasure_record_next_generation",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                func=NEXT_GENERATION,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
