"""Credit: what the running sums are made of, and the sums.

One `Credit` row for each scored interaction, under every policy and for every source. The sums are exact decimals,
updated in the credit's own transaction, and equal a rebuild from these rows to the last digit.
"""

from django.db import models
from django.db.models import F, Q

from memory.models.base import SHA256, at_least, between, matches, one_of, sum_field
from memory.models.interaction import Interaction, Outcome
from memory.models.lesson import Lesson
from memory.models.scope import Account
from memory.models.vocabulary import COHORT, Exposure, OutcomeSource

WITHHELD = [(word, label) for word, label in Exposure.choices if word not in COHORT]


class Credit(models.Model):
    """The deciding outcome of one interaction: `y` 1 for a loss, 0 for a win, NULL after a retraction.

    `b` is the source's loss rate as it stood before this interaction, and is never computed again.
    """

    interaction = models.OneToOneField(Interaction, models.PROTECT, primary_key=True)
    account = models.ForeignKey(Account, models.PROTECT, null=True, db_index=False)
    outcome = models.ForeignKey(Outcome, models.PROTECT, null=True, db_index=False)
    source = models.CharField(max_length=16, choices=OutcomeSource.choices)
    y = models.SmallIntegerField(null=True)
    weight = models.DecimalField(max_digits=4, decimal_places=3)
    b = models.DecimalField(max_digits=13, decimal_places=12)
    task_digest = models.CharField(max_length=64)
    credit_seq = models.BigIntegerField()

    class Meta:
        db_table = "credit"
        constraints = [
            one_of("credit", "source", OutcomeSource.values),
            models.CheckConstraint(
                name="credit_y_binary",
                condition=Q(y__isnull=True, outcome__isnull=True)
                | Q(y__in=(0, 1), y__isnull=False, outcome__isnull=False),
                violation_error_message="y is 0 or 1 with an outcome, or null without one.",
            ),
            between("credit", "weight", 0, 1),
            between("credit", "b", 0, 1, open_ends=True),
            matches("credit", "task_digest", SHA256, "a SHA-256 digest"),
            models.UniqueConstraint(
                fields=["account", "credit_seq"], name="credit_account_credit_seq_unique", nulls_distinct=False
            ),
        ]
        indexes = [
            # The newest credit where lessons are global. To the planner IS NULL is no equality: the unique index would
            # be read from end to end.
            models.Index(fields=["-credit_seq"], name="credit_global_newest", condition=Q(account__isnull=True)),
            # When an outcome is erased, PostgreSQL looks for what still refers to it.
            models.Index(fields=["outcome"], name="credit_deciding_outcome", condition=Q(outcome__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"credit {self.credit_seq}"


def _unique(table: str, *key: str, nulls_distinct: bool | None = None) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=list(key), name=f"{table}_key_unique", nulls_distinct=nulls_distinct)


class SourceSum(models.Model):
    """Scored interactions and losses of one source."""

    account = models.ForeignKey(Account, models.CASCADE, null=True, db_index=False)
    source = models.CharField(max_length=16, choices=OutcomeSource.choices)
    n = models.BigIntegerField()
    losses = models.BigIntegerField()

    class Meta:
        db_table = "source_sum"
        constraints = [
            _unique("source_sum", "account", "source", nulls_distinct=False),
            one_of("source_sum", "source", OutcomeSource.values),
            at_least("source_sum", "n", 0),
            at_least("source_sum", "losses", 0),
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.losses} of {self.n}"


class TaskSum(models.Model):
    """Losses observed (`o`) and expected by source alone (`e`) on one task."""

    account = models.ForeignKey(Account, models.CASCADE, null=True, db_index=False)
    task_digest = models.CharField(max_length=64)
    o = sum_field()
    e = sum_field()

    class Meta:
        db_table = "task_sum"
        constraints = [_unique("task_sum", "account", "task_digest", nulls_distinct=False)]

    def __str__(self) -> str:
        return f"{self.task_digest[:12]}: {self.o} of {self.e}"


class LessonSum(models.Model):
    """Weighted losses observed and expected over the interactions that were handed this lesson."""

    lesson = models.OneToOneField(Lesson, models.CASCADE, primary_key=True)
    o = sum_field()
    e = sum_field()

    class Meta:
        db_table = "lesson_sum"

    def __str__(self) -> str:
        return f"{self.lesson}: {self.o} of {self.e}"


class LessonSourceSum(models.Model):
    """Interactions, losses and total reward of one source over the interactions that were handed this lesson."""

    lesson = models.ForeignKey(Lesson, models.CASCADE, db_index=False)
    source = models.CharField(max_length=16, choices=OutcomeSource.choices)
    n = models.BigIntegerField()
    losses = models.BigIntegerField()
    reward = sum_field()

    class Meta:
        db_table = "lesson_source_sum"
        constraints = [
            _unique("lesson_source_sum", "lesson", "source"),
            one_of("lesson_source_sum", "source", OutcomeSource.values),
            at_least("lesson_source_sum", "n", 0),
            at_least("lesson_source_sum", "losses", 0),
        ]

    def __str__(self) -> str:
        return f"{self.lesson} by {self.source}"


class LessonTaskSum(models.Model):
    """Losses observed and expected on one task over the interactions that were handed this lesson."""

    lesson = models.ForeignKey(Lesson, models.CASCADE, db_index=False)
    task_digest = models.CharField(max_length=64)
    o = sum_field()
    e = sum_field()

    class Meta:
        db_table = "lesson_task_sum"
        constraints = [_unique("lesson_task_sum", "lesson", "task_digest")]

    def __str__(self) -> str:
        return f"{self.lesson} on {self.task_digest[:12]}"


class LessonPairSum(models.Model):
    """Weighted losses observed and expected over the interactions that were handed both lessons."""

    lesson = models.ForeignKey(Lesson, models.CASCADE, db_index=False)
    other = models.ForeignKey(Lesson, models.CASCADE, related_name="+")
    o = sum_field()
    e = sum_field()

    class Meta:
        db_table = "lesson_pair_sum"
        constraints = [
            _unique("lesson_pair_sum", "lesson", "other"),
            models.CheckConstraint(
                name="lesson_pair_sum_ordered",
                condition=Q(lesson__lt=F("other")),
                violation_error_message="the lesson with the smaller id comes first.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lesson} with {self.other}"


class WithheldSum(models.Model):
    """Interactions that withheld this lesson, by why: how many, and their losses observed and expected.

    Judges of weight above 0 only.
    """

    lesson = models.ForeignKey(Lesson, models.CASCADE, db_index=False)
    exposure = models.CharField(max_length=20, choices=WITHHELD)
    n = models.BigIntegerField()
    o = sum_field()
    e = sum_field()

    class Meta:
        db_table = "withheld_sum"
        constraints = [
            _unique("withheld_sum", "lesson", "exposure"),
            one_of("withheld_sum", "exposure", (word for word, _ in WITHHELD)),
            at_least("withheld_sum", "n", 0),
        ]

    def __str__(self) -> str:
        return f"without {self.lesson}: {self.o} of {self.n}, {self.e} expected"
