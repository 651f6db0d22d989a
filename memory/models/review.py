"""What waits for a person, and what persons decided."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from memory.models.base import SHA256, Recorded, append_only, at_least, matches, not_empty, one_of, together
from memory.models.scope import Account
from memory.models.vocabulary import REASONED_VERDICTS, AlertState, ReviewKind, ReviewStatus, Verdict


class ReviewItem(Recorded):
    """One question for a person. At most one is open for a kind and subject."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True)
    version = models.IntegerField(default=1)
    kind = models.CharField(max_length=20, choices=ReviewKind.choices)
    subject = models.UUIDField()
    priority = models.FloatField()
    priority_parts = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=ReviewStatus.choices)
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    claim_expires_at = models.DateTimeField(null=True, blank=True)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    snoozed_servings = models.BigIntegerField(
        null=True, blank=True, help_text="A snoozed question returns when its lesson was handed out this often."
    )
    snoozed_s = models.FloatField(
        null=True, blank=True, help_text="A snoozed question returns when its lesson's S exceeds this, in nats."
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "review_item"
        constraints = [
            one_of("review_item", "kind", ReviewKind.values),
            one_of("review_item", "status", ReviewStatus.values),
            at_least("review_item", "version", 1),
            models.UniqueConstraint(
                fields=["kind", "subject"],
                name="review_item_one_unresolved",
                condition=Q(status__in=("open", "snoozed")),
            ),
            together("review_item", "claim", ("claimed_by", "claim_expires_at")),
        ]
        indexes = [models.Index(fields=["status", "-priority", "created_at"], name="review_item_queue")]

    def __str__(self) -> str:
        return f"{self.kind} ({self.status})"


class Adjudication(Recorded):
    """A person's decision. It outlives the item and the subject; an undo appends."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True)
    item = models.UUIDField(null=True, blank=True)
    subject = models.UUIDField()
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    reason_code = models.CharField(max_length=40, blank=True)
    note = models.TextField(blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    reverts = models.OneToOneField("self", models.PROTECT, null=True, blank=True)
    idempotency_key = models.CharField(max_length=64, blank=True)

    class Meta:
        db_table = "adjudication"
        constraints = [
            models.UniqueConstraint(
                fields=["reviewer", "idempotency_key"],
                name="adjudication_key_unique",
                condition=~Q(idempotency_key=""),
            ),
            one_of("adjudication", "verdict", Verdict.values),
            models.CheckConstraint(
                name="adjudication_reason_given",
                condition=~Q(verdict__in=REASONED_VERDICTS) | ~Q(reason_code=""),
                violation_error_message="this verdict needs a reason.",
            ),
        ]
        indexes = [
            models.Index(fields=["subject", "-created_at"], name="adjudication_subject_newest"),
            models.Index(fields=["reviewer", "-created_at"], name="adjudication_reviewer_newest"),
        ]
        triggers = [append_only("adjudication")]

    def __str__(self) -> str:
        return self.verdict


class Contradiction(Recorded):
    """Two lessons, in these very wordings, that may say opposite things. A verdict holds until one changes."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True, db_index=False)
    first = models.UUIDField()
    second = models.UUIDField()
    first_digest = models.CharField(max_length=64)
    second_digest = models.CharField(max_length=64)
    similarity = models.FloatField()
    basis = models.CharField(max_length=40)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )

    class Meta:
        db_table = "contradiction"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "first_digest", "second_digest"],
                name="contradiction_pair_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="contradiction_pair_ordered",
                condition=Q(first_digest__lt=F("second_digest")),
                violation_error_message="the lesson with the smaller digest comes first.",
            ),
            matches("contradiction", "first_digest", SHA256, "a SHA-256 digest"),
            matches("contradiction", "second_digest", SHA256, "a SHA-256 digest"),
            one_of("contradiction", "verdict", Verdict.values),
        ]
        indexes = [
            models.Index(fields=["first"], name="contradiction_first", condition=Q(verdict__isnull=True)),
            models.Index(fields=["second"], name="contradiction_second", condition=Q(verdict__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.basis} ({self.verdict or 'open'})"


class Comment(Recorded):
    """What a reviewer wrote about a subject."""

    subject = models.UUIDField(db_index=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    text = models.TextField()

    class Meta:
        db_table = "comment"
        constraints = [not_empty("comment", "text")]

    def __str__(self) -> str:
        return self.text[:80]


class SecondOpinion(Recorded):
    """An independent verdict, hidden from the next judge until theirs is saved."""

    subject = models.UUIDField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    verdict = models.CharField(max_length=20, choices=Verdict.choices)

    class Meta:
        db_table = "second_opinion"
        constraints = [
            models.UniqueConstraint(fields=["subject", "author"], name="second_opinion_subject_author_unique"),
            one_of("second_opinion", "verdict", Verdict.values),
        ]

    def __str__(self) -> str:
        return self.verdict


class AlertAcknowledgement(Recorded):
    """A person has seen a warning about the store, and says what becomes of it. The latest row about it counts."""

    account = models.ForeignKey(Account, models.PROTECT, null=True, blank=True, db_index=False)
    alert = models.CharField(max_length=80, help_text="The warning's code, and what exactly it is about.")
    state = models.CharField(max_length=10, choices=AlertState.choices, help_text="How bad it was when it was seen.")
    note = models.TextField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, db_index=False)
    holds = models.BooleanField(help_text="False takes it back: the warning is shown again.")

    class Meta:
        db_table = "alert_acknowledgement"
        constraints = [
            one_of("alert_acknowledgement", "state", AlertState.values),
            not_empty("alert_acknowledgement", "alert"),
            not_empty("alert_acknowledgement", "note"),
        ]
        indexes = [models.Index(fields=["account", "alert", "-created_at"], name="alert_acknowledgement_newest")]
        triggers = [append_only("alert_acknowledgement")]

    def __str__(self) -> str:
        return f"{self.alert} ({self.state})"
