"""The exposure log: which lesson was handed out (or held back) in which interaction, and what came of it."""

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models.base import (
    Recorded,
    SealedTrigger,
    append_only,
    at_least,
    between,
    not_empty,
    one_of,
    refuse,
    together,
)
from memory.models.interaction import Interaction, Outcome
from memory.models.lesson import Lesson
from memory.models.vocabulary import COHORT, Exposure, OutcomeSource, Signal

EXPECTATION = ("expected_loss", "source_rate", "task_factor", "peer_factor", "niche_factor")
OUTCOME_COLUMNS = ("credited_outcome", "outcome_signal", "reward", "outcome_source", "outcome_at")


class LessonUsage(Recorded):
    """One lesson in one interaction. Only `served` and `probation` rows are a cohort; the others are its controls."""

    lesson = models.ForeignKey(Lesson, models.PROTECT, db_index=False)
    interaction = models.ForeignKey(Interaction, models.PROTECT)
    exposure = models.CharField(max_length=20, choices=Exposure.choices)
    rank = models.IntegerField()
    similarity = models.FloatField(null=True)
    lexical_rank = models.IntegerField(null=True)
    fused_score = models.FloatField()
    probability = models.FloatField(help_text="Probability of what happened, as the sampling rule had it.")
    credited_outcome = models.ForeignKey(Outcome, models.PROTECT, null=True, db_index=False)
    outcome_signal = models.CharField(max_length=16, choices=Signal.choices, null=True)
    reward = models.DecimalField(max_digits=3, decimal_places=2, null=True)
    outcome_source = models.CharField(max_length=16, choices=OutcomeSource.choices, null=True)
    outcome_at = models.DateTimeField(null=True)
    expected_loss = models.DecimalField(max_digits=13, decimal_places=12, null=True)
    source_rate = models.FloatField(null=True)
    task_factor = models.FloatField(null=True)
    peer_factor = models.FloatField(null=True)
    niche_factor = models.FloatField(null=True)
    weight = models.DecimalField(max_digits=4, decimal_places=3, null=True)
    credit_seq = models.BigIntegerField(null=True)

    class Meta:
        db_table = "lesson_usage"
        constraints = [
            models.UniqueConstraint(fields=["lesson", "interaction"], name="lesson_usage_lesson_interaction_unique"),
            one_of("lesson_usage", "exposure", Exposure.values),
            one_of("lesson_usage", "outcome_source", OutcomeSource.values),
            one_of("lesson_usage", "outcome_signal", Signal.values),
            at_least("lesson_usage", "rank", 1),
            between("lesson_usage", "reward", -1, 1),
            between("lesson_usage", "weight", 0, 1),
            between("lesson_usage", "expected_loss", 0, 1, open_ends=True),
            models.CheckConstraint(
                name="lesson_usage_probability_range",
                condition=Q(probability__gt=0) & Q(probability__lte=1),
                violation_error_message="probability must be above 0 and at most 1.",
            ),
            together("lesson_usage", "outcome", OUTCOME_COLUMNS),
            models.CheckConstraint(
                name="lesson_usage_withheld_has_expectation",
                condition=Q(exposure__in=COHORT) | Q(credit_seq__isnull=True) | Q(expected_loss__isnull=False),
                violation_error_message="a credited exposure that was withheld has an expected loss.",
            ),
        ]
        indexes = [
            # A lesson's evidence, newest first: the only rows that a trust decision reads.
            models.Index(
                fields=["lesson", "-credit_seq"],
                name="lesson_usage_evidence",
                condition=Q(exposure__in=COHORT) & Q(weight__gt=0),
            ),
            # When an outcome is erased, PostgreSQL looks for what still refers to it.
            models.Index(
                fields=["credited_outcome"],
                name="lesson_usage_credited_outcome",
                condition=Q(credited_outcome__isnull=False),
            ),
        ]

        triggers = [
            # Evidence: what a row was expected to lose stays as it stood when the row was credited.
            SealedTrigger(
                name="lesson_usage_expectation_fixed",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf(*EXPECTATION),
                condition=pgtrigger.Condition(
                    " OR ".join(f"OLD.{c} IS NOT NULL AND NEW.{c} IS DISTINCT FROM OLD.{c}" for c in EXPECTATION)
                ),
                func=refuse("lesson_usage_expectation_fixed", "an expected loss and its factors never change"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lesson} was {self.exposure}"


class UsageExemption(Recorded):
    """A person says that this loss was not caused by this lesson; a later row may take that back."""

    usage = models.ForeignKey(LessonUsage, models.PROTECT)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, db_index=False)
    reason = models.CharField(max_length=500)
    reverts = models.OneToOneField("self", models.PROTECT, null=True, blank=True)

    class Meta:
        db_table = "usage_exemption"
        constraints = [not_empty("usage_exemption", "reason")]
        triggers = [append_only("usage_exemption")]

    def __str__(self) -> str:
        return self.reason
