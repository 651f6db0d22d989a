"""Distillation: the durable queue of interactions that may become a lesson."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.base import at_least, one_of
from memory.models.interaction import Interaction
from memory.models.leased import Leased, held_while_claimed
from memory.models.vocabulary import TERMINAL_DISTILLATION, DistillationReason, DistillationState, Signal

_TERMINAL = Q(state__in=TERMINAL_DISTILLATION)


class LessonDistillation(Leased):
    """One interaction on its way to a lesson or a recorded refusal. Only the holder of the token may finish it."""

    interaction = models.OneToOneField(Interaction, models.PROTECT, primary_key=True)
    state = models.CharField(max_length=10, choices=DistillationState.choices)
    signal = models.CharField(max_length=16, choices=Signal.choices)
    last_error = models.TextField(blank=True)
    result_reason = models.CharField(max_length=24, choices=DistillationReason.choices, null=True)
    lesson = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "lesson_distillation"
        constraints = [
            one_of("lesson_distillation", "state", DistillationState.values),
            one_of("lesson_distillation", "signal", Signal.values),
            one_of("lesson_distillation", "result_reason", DistillationReason.values),
            at_least("lesson_distillation", "attempts", 0),
            *held_while_claimed("lesson_distillation"),
            models.CheckConstraint(
                name="lesson_distillation_terminal_is_complete",
                condition=(_TERMINAL & Q(completed_at__isnull=False, result_reason__isnull=False))
                | (~_TERMINAL & Q(completed_at__isnull=True)),
                violation_error_message="completed_at and result_reason belong to terminal states, and to each.",
            ),
            models.CheckConstraint(
                name="lesson_distillation_lesson_iff_stored",
                condition=(Q(state="stored") & Q(lesson__isnull=False)) | (~Q(state="stored") & Q(lesson__isnull=True)),
                violation_error_message="lesson is set if and only if the state is stored.",
            ),
        ]
        # The queue: what a worker may claim, oldest first.
        indexes = [
            models.Index(
                fields=["created_at"], name="lesson_distillation_queue", condition=Q(state__in=("pending", "retryable"))
            ),
            models.Index(fields=["lease_expires_at"], name="lesson_distillation_leases", condition=Q(state="claimed")),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.result_reason or ''}".strip()
