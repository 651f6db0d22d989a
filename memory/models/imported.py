"""What came from another store: under which id it was known there, and what became of it here."""

from django.db import models
from django.db.models import Q

from memory.models.base import Recorded, not_empty
from memory.models.lesson import ImportRun
from memory.models.scope import Account


class ImportedRow(Recorded):
    """A row of another store by the id that it had there. It outlives what it names, and holds no text.

    What is named here and gone was erased or merged away since: the same file does not bring it back.
    """

    account = models.ForeignKey(Account, models.PROTECT, db_index=False)
    run = models.ForeignKey(ImportRun, models.PROTECT)
    kind = models.CharField(max_length=32)
    legacy_id = models.CharField(max_length=200)
    subject = models.UUIDField(null=True, db_index=True, help_text="What it is here; null where it was refused.")
    refusal = models.CharField(max_length=24, blank=True, help_text="Why it was refused, or is another row here.")

    class Meta:
        db_table = "imported_row"
        constraints = [
            models.UniqueConstraint(fields=["account", "kind", "legacy_id"], name="imported_row_legacy_id_unique"),
            not_empty("imported_row", "kind"),
            not_empty("imported_row", "legacy_id"),
            models.CheckConstraint(
                name="imported_row_subject_or_refusal",
                condition=Q(subject__isnull=False) | ~Q(refusal=""),
                violation_error_message="a row that is nothing here says why.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.legacy_id}"
