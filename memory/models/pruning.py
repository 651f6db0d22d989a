"""Plans that remove near duplicates, and the archive from which a plan can be undone for 30 days."""

from django.db import models

from memory.models.base import SHA256, Recorded, matches


class PrunePlan(Recorded):
    """Clusters of near duplicates with the states the plan saw. Its digest must still match when it is applied."""

    digest = models.CharField(max_length=64, unique=True)
    clusters = models.JSONField()
    states = models.JSONField()
    applied_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "prune_plan"
        constraints = [matches("prune_plan", "digest", SHA256, "a SHA-256 digest")]

    def __str__(self) -> str:
        return self.digest[:12]


class PruneArchive(Recorded):
    """A row that a plan removed, kept until `expires_at`. An erasure reaches it."""

    plan = models.ForeignKey(PrunePlan, models.PROTECT)
    lesson = models.UUIDField(db_index=True)
    kind = models.CharField(max_length=40)
    payload = models.JSONField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "prune_archive"

    def __str__(self) -> str:
        return f"{self.kind} of {self.lesson}"
