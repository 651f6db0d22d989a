"""Sessions: an agent's conversation, its summaries, and the one live turn it may have."""

from django.db import models
from django.db.models.functions import Now

from memory.models.base import Recorded, not_empty
from memory.models.scope import Account, Project


class Session(Recorded):
    """A conversation, named by the agent's own id."""

    account = models.ForeignKey(Account, models.PROTECT, db_index=False)
    project = models.ForeignKey(Project, models.PROTECT, null=True, blank=True)
    external_id = models.CharField(max_length=200)
    title = models.CharField(max_length=200, blank=True)
    summary = models.TextField(blank=True)
    summarized_through = models.ForeignKey(
        "memory.Interaction", models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        db_table = "session"
        constraints = [
            models.UniqueConstraint(fields=["account", "external_id"], name="session_account_external_id_unique"),
            not_empty("session", "external_id"),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id


class SessionProjectSummary(Recorded):
    """What a session meant for one project."""

    session = models.ForeignKey(Session, models.CASCADE, db_index=False)
    project = models.ForeignKey(Project, models.CASCADE)
    summary = models.TextField()
    summarized_through = models.ForeignKey(
        "memory.Interaction", models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        db_table = "session_project_summary"
        constraints = [
            models.UniqueConstraint(fields=["session", "project"], name="session_project_summary_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.session}: {self.project}"


class SessionTurnClaim(models.Model):
    """The one live turn of a session; the holder of the token may write."""

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True)
    claim_token = models.UUIDField()
    owner = models.CharField(max_length=200)
    claimed_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "session_turn_claim"

    def __str__(self) -> str:
        return f"{self.session} is held by {self.owner}"
