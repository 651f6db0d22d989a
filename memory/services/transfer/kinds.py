"""What belongs to an account, kind by kind, in the order in which rows refer to each other.

Not among them: secrets of keys and passwords, who has which role, what is computed anew (sums, band rates, search
columns), kept answers and live claims, job runs, and plans with the archive from which they can be undone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Field, ForeignKey, GeneratedField, Model, Q, QuerySet

from memory.models import (
    Account,
    Adjudication,
    ApiKey,
    Comment,
    Contradiction,
    Credit,
    EmbeddingSpace,
    Fact,
    ImportedRow,
    ImportRun,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonEmbedding,
    LessonStanding,
    LessonTombstone,
    LessonUsage,
    Outcome,
    Preference,
    Project,
    RefinementHistory,
    ReviewItem,
    SecondOpinion,
    Session,
    SessionProjectSummary,
    Task,
    TaskDependency,
    TaskEvent,
    TrustEvent,
    UsageExemption,
    WriteRefusal,
)
from memory.models.scope import scoped

FORMAT: Final = "sonder-account"
VERSION: Final = 1
HEADER, TRAILER, PERSON, SPACE = "header", "trailer", "person", "embedding_space"


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Whose rows, and where their lessons are."""

    account: UUID
    scope: UUID | None  # account of the lessons; None where they are shared

    @property
    def lessons(self) -> "QuerySet[Lesson]":
        """The lessons of the scope, and what was handed out before the scope was drawn otherwise."""
        handed_out = LessonUsage.objects.filter(interaction__account=self.account).values("lesson")
        return Lesson.objects.filter(scoped(self.scope) | Q(pk__in=handed_out))

    @property
    def shared(self) -> Q:
        """Rows of the account, and where lessons are shared those of no account."""
        own = Q(account=self.account)
        return own | Q(account=None) if self.scope is None else own


Rows = Callable[[Owner], "QuerySet[Any]"]


def _own(model: type[Model], path: str = "account") -> Rows:
    return lambda owner: model._default_manager.filter(**{path: owner.account})


def _of_lessons(model: type[Model], column: str = "lesson") -> Rows:
    return lambda owner: model._default_manager.filter(**{f"{column}__in": owner.lessons.values("pk")})


def _about(model: type[Model]) -> Rows:
    """What people wrote about the account's work and lessons."""

    def rows(owner: Owner) -> "QuerySet[Any]":
        work = Interaction.objects.filter(account=owner.account).values("pk")
        return model._default_manager.filter(Q(subject__in=work) | Q(subject__in=owner.lessons.values("pk")))

    return rows


def _tombstones(owner: Owner) -> "QuerySet[Any]":
    return LessonTombstone.objects.filter(scoped(owner.scope))


def _runs(owner: Owner) -> "QuerySet[Any]":
    lessons = owner.lessons.filter(source_import__isnull=False).values("source_import")
    rows = ImportedRow.objects.filter(account=owner.account).values("run")
    return ImportRun.objects.filter(Q(pk__in=lessons) | Q(pk__in=rows))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A table, as far as it leaves with an account."""

    model: type[Model]
    rows: Rows
    only: frozenset[str] = frozenset()  # columns that leave; all but those of `without` if empty
    without: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.model._meta.db_table

    @property
    def fields(self) -> "dict[str, Field[Any, Any]]":
        """Its columns, by name."""
        return {
            f.attname: f
            for f in self.model._meta.concrete_fields
            if not isinstance(f, GeneratedField)
            and f.attname not in self.without
            and (not self.only or f.attname in self.only)
        }

    @property
    def references(self) -> Mapping[str, str]:
        """Columns that name a row of another kind, and the kind."""
        fields = ((name, f) for name, f in self.fields.items() if isinstance(f, ForeignKey))
        return {name: KIND_OF.get(f.remote_field.model, "") for name, f in fields}


# Figures that an evaluation writes are computed where they arrive; the rest only the journal knows.
_STANDING = frozenset({"lesson_id", "quarantined_at", "ledger_from_seq", "released_seq", "released_s"})

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(model=Account, rows=lambda owner: Account.objects.filter(pk=owner.account)),
        Kind(model=ApiKey, rows=_own(ApiKey), without=frozenset({"hashed_key", "last_used_at"})),
        Kind(model=Project, rows=_own(Project)),
        Kind(model=ImportRun, rows=_runs),
        Kind(model=Session, rows=_own(Session)),
        Kind(model=SessionProjectSummary, rows=_own(SessionProjectSummary, "session__account")),
        Kind(model=Interaction, rows=_own(Interaction)),
        Kind(model=Outcome, rows=_own(Outcome, "interaction__account")),
        Kind(model=Lesson, rows=lambda owner: owner.lessons, without=frozenset({"identifiers", "polarity", "anchors"})),
        Kind(model=LessonEmbedding, rows=_of_lessons(LessonEmbedding),
             without=frozenset({"account_id", "state", "reviewed"})),
        Kind(model=LessonTombstone, rows=_tombstones),
        Kind(model=LessonDistillation, rows=_own(LessonDistillation, "interaction__account"),
             without=frozenset({"claim_token", "owner", "claimed_at", "lease_expires_at"})),
        Kind(model=LessonUsage, rows=_own(LessonUsage, "interaction__account")),
        Kind(model=UsageExemption, rows=_own(UsageExemption, "usage__interaction__account")),
        Kind(model=Credit, rows=_own(Credit, "interaction__account")),
        Kind(model=LessonStanding, rows=_of_lessons(LessonStanding), only=_STANDING),
        Kind(model=TrustEvent, rows=_of_lessons(TrustEvent)),
        Kind(model=Preference, rows=_own(Preference)),
        Kind(model=RefinementHistory, rows=_own(RefinementHistory, "preference__account")),
        Kind(model=Fact, rows=_own(Fact)),
        Kind(model=Task, rows=_own(Task)),
        Kind(model=TaskEvent, rows=_own(TaskEvent, "task__account")),
        Kind(model=TaskDependency, rows=_own(TaskDependency, "task__account")),
        Kind(model=Contradiction, rows=lambda owner: Contradiction.objects.filter(scoped(owner.scope))),
        Kind(model=ReviewItem, rows=lambda owner: ReviewItem.objects.filter(owner.shared),
             without=frozenset({"claimed_by_id", "claim_expires_at"})),
        Kind(model=Adjudication, rows=lambda owner: Adjudication.objects.filter(owner.shared)),
        Kind(model=Comment, rows=_about(Comment)),
        Kind(model=SecondOpinion, rows=_about(SecondOpinion)),
        Kind(model=WriteRefusal, rows=_own(WriteRefusal)),
        Kind(model=ImportedRow, rows=_own(ImportedRow)),
    )
}  # fmt: skip
KIND_OF: Final[Mapping[type[Model], str]] = {
    **{kind.model: kind.name for kind in KINDS.values()},
    EmbeddingSpace: SPACE,
    get_user_model(): PERSON,
}

SPACE_FIELDS: "Final[Mapping[str, Field[Any, Any]]]" = {
    f.attname: f for f in EmbeddingSpace._meta.concrete_fields if f.attname != "is_active"
}


@dataclass(kw_only=True)
class Moved:
    """What became of the rows of one kind."""

    rows: int = 0  # in the file
    imported: int = 0
    already: int = 0  # here before
    skipped: dict[str, int] = field(default_factory=dict)  # by reason

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
