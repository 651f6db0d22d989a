"""What waits for a person, and what others did since they last looked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Case, Count, F, IntegerField, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from memory.models import Adjudication, Contradiction, Interaction, Lesson, RefinementHistory, ReviewItem, TrustEvent
from memory.models.vocabulary import RefinementOperation, ReviewKind, ReviewStatus, Role
from memory.services.authority import Person
from memory.services.ids import first_id
from review.context import QUEUES
from review.events import NEWS

NEWS_SHOWN: Final = 6
NEWS_READ: Final = 50  # more than that says only that much happened


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The question that a person should take first."""

    item: UUID
    kind: str
    subject: UUID
    line: str  # what it is about: a lesson's text, both texts of a contradiction, or a task
    since: datetime
    why: str  # why this person, why this question
    held: bool  # they have it open already


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Why there is no question to take."""

    decided_today: int  # by this person
    held_by: str  # who has what is left; empty where nothing is left
    held_until: datetime | None


@dataclass(frozen=True, kw_only=True)
class QueueSize:
    """What waits in one queue."""

    name: str
    waiting: int
    oldest: datetime | None
    held: int  # of them in somebody's hands now


@dataclass(frozen=True, kw_only=True)
class News:
    """Something that another did, or the system."""

    id: UUID
    what: str  # a kind of trust event, or `rollback`
    subject: UUID  # a lesson or a preference
    line: str
    actor: str  # as the journal names it
    at: datetime


def decidable(person: Person) -> Q:
    """Questions that their role lets them answer: judges outcomes, reviewers everything, others none."""
    outcomes = [kind.value for kind in QUEUES["outcomes"]]
    rows = Q(pk__in=[])
    for role, kinds in ((Role.JUDGE, Q(kind__in=outcomes)), (Role.REVIEWER, ~Q(kind__in=outcomes))):
        accounts = person.accounts(role)
        if accounts is None:
            rows |= kinds
        elif accounts:
            rows |= kinds & (Q(account__isnull=True) | Q(account__in=accounts))
    return rows


def _mine(person: Person) -> QuerySet[ReviewItem]:
    """Open questions that the person may answer, and that are not given to somebody else."""
    rows = ReviewItem.objects.filter(decidable(person), status=ReviewStatus.OPEN.value)
    own_request = Q(kind=ReviewKind.SECOND_OPINION.value, requested_by=person.user_id)
    return rows.filter(Q(assigned_to__isnull=True) | Q(assigned_to=person.user_id)).exclude(own_request)


def may_decide(person: Person) -> bool:
    """Whether there is any kind of question that they may answer."""
    return bool(person.everywhere or person.accounts(Role.JUDGE))


def turn(person: Person, now: datetime) -> Turn | None:
    """What they have open, then what is given to them, then what a colleague asks them, then the most urgent."""
    if not may_decide(person):
        return None
    held = Q(claimed_by__isnull=False, claim_expires_at__gt=now)
    free = _mine(person).exclude(held & ~Q(claimed_by=person.user_id))
    order = Case(
        When(held, then=Value(0)),
        When(assigned_to=person.user_id, then=Value(1)),
        When(kind=ReviewKind.SECOND_OPINION.value, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    lines = Coalesce(_lesson("subject"), _first_of_pair(), _task())
    asker = get_user_model().objects.filter(pk=OuterRef("requested_by")).values("username")[:1]
    row = (
        free.annotate(order=order, line=lines, asker=Subquery(asker))
        .order_by("order", "-priority", "created_at", "pk")
        .values_list("pk", "kind", "subject", "line", "created_at", "order", "asker")
        .first()
    )
    if row is None:
        return None
    pk, kind, subject, line, since, place, who = row
    line = line or "What it was about is gone."
    return Turn(item=pk, kind=kind, subject=subject, line=line, since=since, why=_why(place, who), held=place == 0)


def _lesson(column: str) -> Subquery:
    return Subquery(Lesson.objects.filter(pk=OuterRef(column)).values("text")[:1])


def _first_of_pair() -> Subquery:
    return Subquery(Contradiction.objects.filter(pk=OuterRef("subject")).values(line=_lesson("first"))[:1])


def _task() -> Subquery:
    return Subquery(Interaction.objects.filter(pk=OuterRef("subject")).values("task")[:1])


def _why(order: int, asker: str | None) -> str:
    if order == 0:
        return "You have it open."
    if order == 1:
        return "It is assigned to you."
    if order == 2:
        return f"{asker or 'A colleague'} asks for a second opinion."
    return "The most urgent question that your role lets you answer."


def nothing(person: Person, now: datetime) -> Nothing:
    """Whether all is done, or others hold what is left."""
    held = _mine(person).filter(claimed_by__isnull=False, claim_expires_at__gt=now).exclude(claimed_by=person.user_id)
    first = held.order_by("claim_expires_at").values_list("claimed_by__username", "claim_expires_at").first()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Adjudication.objects.filter(reviewer=person.user_id, created_at__gte=midnight, reverts__isnull=True)
    return Nothing(
        decided_today=today.count(), held_by=first[0] if first else "", held_until=first[1] if first else None
    )


def queue_sizes(visible: Q, now: datetime) -> list[QueueSize]:
    """Every queue, also an empty one."""
    rows = ReviewItem.objects.filter(visible, status=ReviewStatus.OPEN.value).order_by()
    counted = rows.values("kind").annotate(
        n=Count("pk"), oldest=Min("created_at"), held=Count("pk", filter=Q(claim_expires_at__gt=now))
    )
    by_kind: dict[str, Mapping[str, Any]] = {row["kind"]: row for row in counted}
    return [
        _size(name, [by_kind[kind.value] for kind in kinds if kind.value in by_kind]) for name, kinds in QUEUES.items()
    ]


def _size(name: str, rows: Sequence[Mapping[str, Any]]) -> QueueSize:
    return QueueSize(
        name=name,
        waiting=sum(row["n"] for row in rows),
        oldest=min((row["oldest"] for row in rows), default=None),
        held=sum(row["held"] for row in rows),
    )


def news(person: Person, since: datetime, visible: Q, own: Q, dismissed: Collection[str]) -> list[News]:
    """What others did to lessons and preferences that the person may see, newest first, at most `NEWS_READ`."""
    text = Subquery(Lesson.objects.filter(visible, pk=OuterRef("lesson")).values("text")[:1])
    recent = Q(pk__gte=first_id(since), created_at__gt=since)  # the id lets an index find it
    events = (
        TrustEvent.objects.filter(recent, kind__in=[kind.value for kind in NEWS])
        .annotate(what=F("kind"), about=F("lesson"), line=text)
        .filter(line__isnull=False)
    )
    rollbacks = RefinementHistory.objects.filter(recent, own, operation=RefinementOperation.ROLLBACK.value).annotate(
        what=F("operation"), about=F("preference_id"), line=F("preference__text")
    )
    columns = ("pk", "what", "about", "line", "actor", "created_at")
    both = [rows.exclude(actor=person.actor).exclude(pk__in=dismissed) for rows in (events, rollbacks)]
    found = both[0].values_list(*columns).union(both[1].values_list(*columns), all=True)
    return [
        News(id=pk, what=what, subject=subject, line=line, actor=actor, at=at)
        for pk, what, subject, line, actor, at in found.order_by("-created_at", "-pk")[:NEWS_READ]
    ]
