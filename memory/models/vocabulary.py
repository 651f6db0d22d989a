"""The closed vocabularies. PostgreSQL checks each; the rules know the same words."""

from django.db.models import TextChoices


class ReviewPolicy(TextChoices):
    AUTO = "auto", "new lessons are served at once"
    GATED = "gated", "new lessons wait for a reviewer"


class Role(TextChoices):
    VIEWER = "viewer", "reads and exports"
    JUDGE = "judge", "scores interactions"
    REVIEWER = "reviewer", "decides lessons and contradictions"
    MAINTAINER = "maintainer", "rolls back, applies plans, changes thresholds"


class OutcomeSource(TextChoices):
    """Who judged, strongest first."""

    CALLER = "caller", "someone with judgement looked at the work"
    MACHINE = "machine", "the runtime graded this interaction's own output"
    ATTRIBUTED = "attributed", "a later verification, matched back"
    SELF_CURRICULUM = "self_curriculum", "the agent sat its own exam"
    UNKNOWN = "unknown", "nobody recorded who judged"


class Signal(TextChoices):
    TESTS_PASSED = "tests_passed"
    USED = "used"
    COPIED = "copied"
    ACCEPTED = "accepted"
    EDITED = "edited"
    COMPILED = "compiled"
    REJECTED = "rejected"
    FAILED = "failed"
    RETRACTED = "retracted"


class LessonState(TextChoices):
    CANDIDATE = "candidate", "waits for a reviewer"
    ACTIVE = "active", "served"
    QUARANTINED = "quarantined", "kept out: its losses are improbable for its own base rate"
    REJECTED = "rejected", "a reviewer rejected the value"
    SUPERSEDED = "superseded", "replaced by another lesson"


class Origin(TextChoices):
    DISTILLED = "distilled", "learned from an interaction"
    IMPORTED = "imported", "brought in by an operator"
    EDITED = "edited", "a person's new wording of an earlier lesson"
    SEEDED = "seeded", "demo data"


class Exposure(TextChoices):
    SERVED = "served", "handed out"
    PROBATION = "probation", "handed out although quarantined, as a sample"
    WITHHELD_TRIAL = "withheld_trial", "left out by the coin of a trial"
    WITHHELD_QUARANTINE = "withheld_quarantine", "left out by quarantine"


# A cohort is what was handed out together; the withheld rows are its controls.
COHORT = (Exposure.SERVED.value, Exposure.PROBATION.value)


class DistillationState(TextChoices):
    PENDING = "pending"
    CLAIMED = "claimed"
    RETRYABLE = "retryable"
    STORED = "stored"
    NO_LESSON = "no_lesson"
    CANCELLED = "cancelled"
    FAILED = "failed"


TERMINAL_DISTILLATION = ("stored", "no_lesson", "cancelled", "failed")


class DistillationReason(TextChoices):
    STORED = "stored"
    NOT_CONCRETE = "not_concrete"
    EXACT_DUPLICATE = "exact_duplicate"
    SEMANTIC_DUPLICATE = "semantic_duplicate"
    REJECTED_VALUE = "rejected_value"
    PRIVATE = "private"
    CONTRADICTED = "contradicted"
    NO_CANDIDATE = "no_candidate"
    DISTILLER_ERROR = "distiller_error"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    CANCELLED_BY_OPERATOR = "cancelled_by_operator"


class TombstoneReason(TextChoices):
    NEAR_DUPLICATE_PRUNED = "near_duplicate_pruned"
    QUARANTINED = "quarantined"
    REJECTED_BY_REVIEWER = "rejected_by_reviewer"
    SUPERSEDED = "superseded"


class TrustEventKind(TextChoices):
    TRIAL_OPENED = "trial_opened"
    TRIAL_CLOSED = "trial_closed"
    QUARANTINED = "quarantined"
    PROBATION_OPENED = "probation_opened"
    PROBATION_LOSS = "probation_loss"
    REHABILITATED = "rehabilitated"
    RELEASED_BY_REVIEWER = "released_by_reviewer"
    RELEASED_TO_TRIAL = "released_to_trial"
    UPHELD = "upheld"
    QUARANTINED_BY_REVIEWER = "quarantined_by_reviewer"
    REJECTED_BY_REVIEWER = "rejected_by_reviewer"
    RESTORED_BY_REVIEWER = "restored_by_reviewer"
    APPROVED = "approved"
    EDITED = "edited"
    MERGED = "merged"
    PRUNED = "pruned"
    EXEMPTED = "exempted"
    UNDONE = "undone"


class RefinementOperation(TextChoices):
    APPLY = "apply"
    ROLLBACK = "rollback"


class TaskStatus(TextChoices):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELLED = "cancelled"


class ReviewKind(TextChoices):
    NEW_LESSON = "new_lesson"
    QUARANTINE = "quarantine"
    CONTRADICTION = "contradiction"
    NEAR_DUPLICATE = "near_duplicate"
    VAGUE = "vague"
    STALE = "stale"
    OUTCOME_NEEDED = "outcome_needed"
    OUTCOME_CONFLICT = "outcome_conflict"
    SECOND_OPINION = "second_opinion"


class ReviewStatus(TextChoices):
    OPEN = "open"
    SNOOZED = "snoozed"
    RESOLVED = "resolved"
    OBSOLETE = "obsolete"


class AlertState(TextChoices):
    BUILDING = "building", "too little evidence to tell"
    WATCH = "watch", "worth a look this week"
    ATTENTION = "attention", "needs somebody today"


class Verdict(TextChoices):
    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    QUARANTINE = "quarantine"
    UPHOLD = "uphold"
    RELEASE_TO_TRIAL = "release_to_trial"
    RELEASE = "release"
    MERGE = "merge"
    RESTORE = "restore"
    KEEP_FIRST = "keep_first"
    KEEP_SECOND = "keep_second"
    KEEP_BOTH = "keep_both"
    MERGE_BOTH = "merge_both"
    NOT_A_CONTRADICTION = "not_a_contradiction"
    EXEMPT_ROW = "exempt_row"
    JUDGE_OUTCOME = "judge_outcome"
    UNDO = "undo"


class WebhookEvent(TextChoices):
    QUARANTINED = "lesson.quarantined", "a lesson was taken out of service"
    CONTRADICTION = "contradiction.found", "two lessons may say opposite things"
    REVIEW_LATE = "review.late", "the oldest question has waited too long"
    TEST = "webhook.test", "somebody tries the endpoint"


class DeliveryState(TextChoices):
    PENDING = "pending"
    CLAIMED = "claimed"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_DELIVERY = ("delivered", "failed", "cancelled")


class OperatorAction(TextChoices):
    KEY_MADE = "key_made", "made an API key"
    KEY_ROTATED = "key_rotated", "replaced an API key"
    KEY_REVOKED = "key_revoked", "revoked an API key"
    DISTILLATION_RETRIED = "distillation_retried", "gave a distillation its attempts back"
    DISTILLATION_CANCELLED = "distillation_cancelled", "called a distillation off"
    LESSON_REEMBEDDED = "lesson_reembedded", "had a lesson embedded anew"


class DisabledBecause(TextChoices):
    OPERATOR = "operator", "an operator switched it off"
    FAILING = "failing", "it took nothing for days"
    GONE = "gone", "it answered 410, that it wants no more"


# Verdicts that take a lesson out of retrieval or put one back: each needs a reason.
REASONED_VERDICTS = (
    "reject", "quarantine", "release_to_trial", "release", "merge", "restore", "keep_first", "keep_second",
)  # fmt: skip
