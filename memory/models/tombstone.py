"""Tombstones: values that were rejected, remembered without their content."""

from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField

from memory.models.base import SHA256, Recorded, at_least, matches, one_of, together
from memory.models.lesson import EmbeddingSpace
from memory.models.scope import Account
from memory.models.vocabulary import TombstoneReason


class LessonTombstone(Recorded):
    """A rejected value. It has a digest, a vector and keyed hashes, and no text, ever."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True, db_index=False)
    text_sha256 = models.CharField(max_length=64)
    embedding = HalfVectorField(null=True)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, null=True)
    polarity = models.JSONField(default=dict)
    anchor_macs = models.JSONField(default=dict)
    signature_version = models.IntegerField()
    mac_key_id = models.CharField(max_length=16)
    reason = models.CharField(max_length=24, choices=TombstoneReason.choices)
    source_lesson = models.UUIDField(db_index=True)
    successor_lesson = models.UUIDField(null=True)
    source_interaction = models.UUIDField(null=True, db_index=True)

    class Meta:
        db_table = "lesson_tombstone"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "text_sha256"], name="lesson_tombstone_account_text_unique", nulls_distinct=False
            ),
            matches("lesson_tombstone", "text_sha256", SHA256, "a SHA-256 digest"),
            one_of("lesson_tombstone", "reason", TombstoneReason.values),
            at_least("lesson_tombstone", "signature_version", 1),
            together("lesson_tombstone", "embedding", ("embedding", "space")),
            models.CheckConstraint(
                name="lesson_tombstone_mac_key_id_not_empty",
                condition=~Q(mac_key_id=""),
                violation_error_message="mac_key_id is empty.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.text_sha256[:12]}"
