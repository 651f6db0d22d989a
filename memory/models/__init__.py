"""What is remembered, one file a concept. What must never break is checked by PostgreSQL itself."""

from memory.models.credit import (
    Credit,
    LessonPairSum,
    LessonSourceSum,
    LessonSum,
    LessonTaskSum,
    SourceSum,
    TaskSum,
    WithheldSum,
)
from memory.models.distillation import LessonDistillation
from memory.models.fact import Fact
from memory.models.imported import ImportedRow
from memory.models.interaction import Interaction, Outcome
from memory.models.lesson import EmbeddingSpace, ImportRun, Lesson, LessonEmbedding
from memory.models.operations import Calibration, ErasureRecord, IdempotencyRecord, JobRun, OperatorAct, WriteRefusal
from memory.models.preference import Preference, RefinementHistory
from memory.models.pruning import PruneArchive, PrunePlan
from memory.models.review import (
    Adjudication,
    AlertAcknowledgement,
    Comment,
    Contradiction,
    ReviewItem,
    SecondOpinion,
)
from memory.models.scope import Account, ApiKey, Membership, Project
from memory.models.session import Session, SessionProjectSummary, SessionTurnClaim
from memory.models.task import Task, TaskDependency, TaskEvent
from memory.models.tombstone import LessonTombstone
from memory.models.trust import BandRate, LessonStanding, TrustEvent
from memory.models.usage import LessonUsage, UsageExemption
from memory.models.webhook import WebhookDelivery, WebhookEndpoint

__all__ = [
    "Account",
    "Adjudication",
    "AlertAcknowledgement",
    "ApiKey",
    "BandRate",
    "Calibration",
    "Comment",
    "Contradiction",
    "Credit",
    "EmbeddingSpace",
    "ErasureRecord",
    "Fact",
    "IdempotencyRecord",
    "ImportRun",
    "ImportedRow",
    "Interaction",
    "JobRun",
    "Lesson",
    "LessonDistillation",
    "LessonEmbedding",
    "LessonPairSum",
    "LessonSourceSum",
    "LessonStanding",
    "LessonSum",
    "LessonTaskSum",
    "LessonTombstone",
    "LessonUsage",
    "Membership",
    "OperatorAct",
    "Outcome",
    "Preference",
    "Project",
    "PruneArchive",
    "PrunePlan",
    "RefinementHistory",
    "ReviewItem",
    "SecondOpinion",
    "Session",
    "SessionProjectSummary",
    "SessionTurnClaim",
    "SourceSum",
    "Task",
    "TaskDependency",
    "TaskEvent",
    "TaskSum",
    "TrustEvent",
    "UsageExemption",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WithheldSum",
    "WriteRefusal",
]
