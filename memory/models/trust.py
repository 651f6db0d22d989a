"""Standings and the journal of trust: why a lesson is where it is."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.base import ACTOR, Recorded, append_only, at_least, between, matches, one_of
from memory.models.lesson import Lesson
from memory.models.scope import Account
from memory.models.vocabulary import TrustEventKind


class LessonStanding(models.Model):
    """The figures of a lesson's last evaluation. All but the first four columns can be computed again."""

    lesson = models.OneToOneField(Lesson, models.CASCADE, primary_key=True)
    quarantined_at = models.DateTimeField(null=True)
    ledger_from_seq = models.BigIntegerField(null=True)
    released_seq = models.BigIntegerField(null=True)
    released_s = models.FloatField(null=True)
    policy = models.CharField(max_length=12)
    wins = models.BigIntegerField()
    losses = models.BigIntegerField()
    last_win_at = models.DateTimeField(null=True)
    last_loss_at = models.DateTimeField(null=True)
    s = models.FloatField(null=True, help_text="The ledger S, natural log of the odds; null under `reference`.")
    d = models.FloatField(null=True, help_text="The evidence D of the probation rows, in nats; null under `reference`.")
    on_trial = models.BooleanField(help_text="A coin decides whether the lesson is served.")
    evidence = models.JSONField(default=dict)
    evaluated_at = models.DateTimeField(db_default=Now())
    version = models.BigIntegerField()

    class Meta:
        db_table = "lesson_standing"
        constraints = [
            one_of("lesson_standing", "policy", ("reference", "trial")),
            at_least("lesson_standing", "wins", 0),
            at_least("lesson_standing", "losses", 0),
            at_least("lesson_standing", "version", 1),
        ]

    def __str__(self) -> str:
        return f"{self.wins} won, {self.losses} lost"


class BandRate(models.Model):
    """The loss rate of lessons that were scored `lower` to `upper` times, shrunk towards its prior."""

    account = models.ForeignKey(Account, models.CASCADE, null=True, db_index=False)
    lower = models.IntegerField()
    upper = models.IntegerField(null=True)
    scored = models.BigIntegerField()
    losses = models.BigIntegerField()
    prior = models.FloatField()
    rate = models.FloatField()
    measured_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "band_rate"
        constraints = [
            models.UniqueConstraint(fields=["account", "lower"], name="band_rate_key_unique", nulls_distinct=False),
            at_least("band_rate", "lower", 1),
            at_least("band_rate", "scored", 0),
            at_least("band_rate", "losses", 0),
            between("band_rate", "rate", 0, 1, open_ends=True),
            between("band_rate", "prior", 0, 1, open_ends=True),
            models.CheckConstraint(
                name="band_rate_upper_above_lower",
                condition=Q(upper__isnull=True) | Q(upper__gte=F("lower")),
                violation_error_message="upper must not be below lower.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lower} to {self.upper or 'more'}: {self.rate}"


class TrustEvent(Recorded):
    """What happened to a lesson's standing, with everything the decision knew. Outlives the lesson."""

    lesson = models.UUIDField()
    kind = models.CharField(max_length=24, choices=TrustEventKind.choices)
    evidence = models.JSONField(default=dict)
    actor = models.CharField(max_length=80)

    class Meta:
        db_table = "trust_event"
        constraints = [
            one_of("trust_event", "kind", TrustEventKind.values),
            matches("trust_event", "actor", ACTOR, "system, api_key:<prefix> or user:<id>"),
        ]
        indexes = [models.Index(fields=["lesson", "-created_at"], name="trust_event_lesson_newest")]
        triggers = [append_only("trust_event")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor}"
