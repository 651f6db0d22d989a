"""Accounts, projects, who may do what, and the API keys that decide who judged."""

from uuid import UUID

from django.conf import settings
from django.db import models

from memory.models.base import Recorded, matches, not_empty, one_of
from memory.models.vocabulary import OutcomeSource, ReviewPolicy, Role

SLUG = r"^[a-z0-9][a-z0-9_.-]{0,62}$"
SLUG_WORDS = "1 to 63 characters: lower-case letters, digits, '-', '_', '.', starting with a letter or digit"


def scoped(account_id: UUID | None) -> models.Q:
    """Rows of one account; of no account where that is None, which is where what is global lives."""
    return models.Q(account__isnull=True) if account_id is None else models.Q(account_id=account_id)


class Account(Recorded):
    """A tenant: what one account writes, no other reads."""

    slug = models.CharField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    review_policy = models.CharField(max_length=10, choices=ReviewPolicy.choices)

    class Meta:
        db_table = "account"
        ordering = ("slug",)
        constraints = [
            one_of("account", "review_policy", ReviewPolicy.values),
            matches("account", "slug", SLUG, SLUG_WORDS),
        ]

    def __str__(self) -> str:
        return self.slug


class Project(Recorded):
    """A narrower scope inside an account."""

    account = models.ForeignKey(Account, models.PROTECT)
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)

    class Meta:
        db_table = "project"
        ordering = ("account", "slug")
        constraints = [
            models.UniqueConstraint(fields=["account", "slug"], name="project_account_slug_unique"),
            matches("project", "slug", SLUG, SLUG_WORDS),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(Recorded):
    """What a person may do in an account."""

    account = models.ForeignKey(Account, models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        db_table = "membership"
        constraints = [
            one_of("membership", "role", Role.values),
            models.UniqueConstraint(fields=["account", "user"], name="membership_account_user_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} in {self.account}"


class ApiKey(Recorded):
    """A credential. Its account is the scope of every call, its source is who judged; a request can choose neither."""

    account = models.ForeignKey(Account, models.PROTECT)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    hashed_key = models.CharField(max_length=64)
    outcome_source = models.CharField(max_length=16, choices=OutcomeSource.choices)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "api_key"
        ordering = ("-created_at",)
        constraints = [
            one_of("api_key", "outcome_source", OutcomeSource.values),
            matches("api_key", "hashed_key", r"^[0-9a-f]{64}$", "a SHA-256 digest"),
            not_empty("api_key", "prefix"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"
