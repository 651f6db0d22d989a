"""Preferences, and the journal of every change made to one."""

from django.db import models
from django.db.models import F, Func, IntegerField, Q
from django.db.models.functions import Cast

from memory.models.base import ACTOR, SHA256, Recorded, append_only, at_least, between, matches, not_empty, one_of
from memory.models.scope import Account
from memory.models.vocabulary import RefinementOperation

JSON_LIMIT = 16 * 1024  # bytes
SCOPE = r"^(global|project:[a-z0-9][a-z0-9_.-]{0,62})$"


class Preference(Recorded):
    """What a person wants, as a sentence, for all their work or for one project."""

    account = models.ForeignKey(Account, models.PROTECT, db_index=False)
    scope = models.CharField(max_length=80)
    key = models.CharField(max_length=100)
    text = models.TextField()
    source_interaction = models.UUIDField(null=True, blank=True, db_index=True)
    confidence = models.FloatField()
    evidence_count = models.IntegerField()
    enabled = models.BooleanField()
    revision = models.IntegerField()

    class Meta:
        db_table = "preference"
        constraints = [
            models.UniqueConstraint(fields=["account", "scope", "key"], name="preference_account_scope_key_unique"),
            matches("preference", "scope", SCOPE, "global or project:<slug>"),
            not_empty("preference", "key"),
            not_empty("preference", "text"),
            between("preference", "confidence", 0, 1),
            at_least("preference", "evidence_count", 0),
            at_least("preference", "revision", 1),
        ]

    def __str__(self) -> str:
        return f"{self.scope}/{self.key}"


def _small(column: str) -> models.CheckConstraint:
    size = Func(Cast(column, models.TextField()), function="octet_length", output_field=IntegerField())
    return models.CheckConstraint(
        name=f"refinement_history_{column}_size",
        condition=models.lookups.LessThanOrEqual(size, JSON_LIMIT),
        violation_error_message=f"{column} is over {JSON_LIMIT} bytes.",
    )


class RefinementHistory(Recorded):
    """One change of a preference: what it was, what it became, on which evidence, and how to check both."""

    preference = models.ForeignKey(Preference, models.PROTECT)
    operation = models.CharField(max_length=8, choices=RefinementOperation.choices)
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True)
    expected_version = models.IntegerField()
    before_version = models.IntegerField()
    after_version = models.IntegerField()
    before_digest = models.CharField(max_length=64)
    after_digest = models.CharField(max_length=64)
    before_json = models.JSONField()
    after_json = models.JSONField()
    evidence_json = models.JSONField()
    expected_outcome = models.CharField(max_length=2048)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "refinement_history"
        constraints = [
            one_of("refinement_history", "operation", RefinementOperation.values),
            models.CheckConstraint(
                name="refinement_history_parent_iff_rollback",
                condition=Q(operation="rollback", parent__isnull=False) | Q(operation="apply", parent__isnull=True),
                violation_error_message="a rollback names its parent, an apply has none.",
            ),
            *(
                at_least("refinement_history", name, 1)
                for name in ("expected_version", "before_version", "after_version")
            ),
            models.CheckConstraint(
                name="refinement_history_versions_follow",
                condition=Q(after_version=F("before_version") + 1),
                violation_error_message="after_version must be before_version + 1.",
            ),
            matches("refinement_history", "before_digest", SHA256, "a SHA-256 digest"),
            matches("refinement_history", "after_digest", SHA256, "a SHA-256 digest"),
            *(_small(name) for name in ("before_json", "after_json", "evidence_json")),
            not_empty("refinement_history", "expected_outcome"),
            matches("refinement_history", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]
        triggers = [append_only("refinement_history")]

    def __str__(self) -> str:
        return f"{self.operation} to version {self.after_version}"
