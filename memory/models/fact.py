"""Facts about a project, bitemporal: when each was true, and when the store believed it."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.models.base import SealedTrigger, new_id, not_empty, refuse, together
from memory.models.lesson import EmbeddingSpace
from memory.models.scope import Account, Project


class Fact(models.Model):
    """A statement, true from `valid_from` to `valid_until`, believed from `recorded_at` to `retracted_at`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    account = models.ForeignKey(Account, models.PROTECT)
    project = models.ForeignKey(Project, models.PROTECT, db_index=False)
    key = models.CharField(max_length=200, null=True, blank=True)
    text = models.TextField()
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField(db_default=Now(), editable=False)
    retracted_at = models.DateTimeField(null=True, blank=True)
    supersedes = models.UUIDField(null=True, blank=True)
    embedding = HalfVectorField(null=True, blank=True)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, null=True, blank=True, db_index=False)

    class Meta:
        db_table = "fact"
        constraints = [
            not_empty("fact", "text"),
            models.CheckConstraint(
                name="fact_valid_order",
                condition=Q(valid_from__isnull=True) | Q(valid_until__isnull=True) | Q(valid_from__lt=F("valid_until")),
                violation_error_message="valid_from must be before valid_until.",
            ),
            together("fact", "embedding", ("embedding", "space")),
        ]
        indexes = [models.Index(fields=["project", "key", "-recorded_at"], name="fact_project_key")]
        triggers = [
            # One belief at a time about one key: two writers of the same key take turns.
            SealedTrigger(
                name="fact_no_overlap",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                # A period that ends before it starts is left to its CHECK: a range of it would be an error of its own.
                condition=pgtrigger.Condition(
                    "NEW.key IS NOT NULL AND NEW.retracted_at IS NULL"
                    " AND (NEW.valid_from < NEW.valid_until) IS NOT FALSE"
                ),
                func=f"""
                    PERFORM pg_advisory_xact_lock(hashtextextended('fact:' || NEW.project_id || ':' || NEW.key, 0));
                    IF EXISTS (
                        SELECT 1 FROM fact WHERE project_id = NEW.project_id AND key = NEW.key
                            AND retracted_at IS NULL AND id <> NEW.id
                            AND tstzrange(valid_from, valid_until) && tstzrange(NEW.valid_from, NEW.valid_until)
                    ) THEN
                        {refuse("fact_one_at_a_time", "another unretracted fact about this key is valid at that time")}
                    END IF;
                    RETURN NEW;
                """,
            )
        ]

    def __str__(self) -> str:
        return self.text[:80]
