"""The inbox: which questions stand in which tab, a page of them at a time, and what a person did today."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.postgres.search import SearchQuery
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from memory.models import Adjudication, Interaction, Lesson, LessonStanding, Project, ReviewItem
from memory.models.lesson import JOINERS
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind, ReviewStatus
from memory.services import review_queue
from memory.services.bulk_decisions import holder_of
from memory.services.questions import UNRESOLVED
from review.context import INBOX
from review.queries.outcomes import standing_of

PAGE: Final = 50
PROJECTS: Final = 200  # in the filter
PEOPLE: Final = ("claimed_by", "requested_by", "assigned_to", "resolved_by")
TABS: Final = ("new", "second", "returned", "snoozed", "mine")
NEW_KINDS: Final = tuple(kind.value for kind in INBOX)
#: Every kind that is about a lesson: what is somebody's own may come from the quarantine board too.
LESSON_KINDS: Final = (*NEW_KINDS, ReviewKind.QUARANTINE.value, ReviewKind.SECOND_OPINION.value)
PUT_OFF: Final = Q(snoozed_until__isnull=False) | Q(snoozed_servings__isnull=False) | Q(snoozed_s__isnull=False)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What a person looks at; all of it stands in the address."""

    tab: str = "new"  # one of TABS
    kind: str = ""  # a kind of question; empty for all
    project: UUID | None = None  # where the lesson was learned
    words: str = ""  # in the lesson


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Who looks."""

    user: int
    seen: Q  # of their accounts, and global
    skipped: Collection[UUID]  # in this session


@dataclass(frozen=True, kw_only=True)
class Row:
    """A question in the list."""

    item: ReviewItem
    lesson: Lesson
    holder: str  # somebody else who has it now; empty for nobody

    @property
    def standing(self) -> LessonStanding | None:
        return standing_of(self.lesson)


@dataclass(frozen=True, kw_only=True)
class Today:
    """What a person did since midnight UTC."""

    decided: int
    median: float | None  # seconds between decisions; None for fewer than two


def _tab(name: str, reader: Reader) -> Q:
    opened, asleep = Q(status=ReviewStatus.OPEN.value), Q(status=ReviewStatus.SNOOZED.value)
    due = Q(pk__in=review_queue.due().values("pk"))
    here = Q(kind__in=NEW_KINDS)
    mine = Q(assigned_to=reader.user) | Q(requested_by=reader.user)
    mine |= Q(claimed_by=reader.user, claim_expires_at__gt=timezone.now())
    second = opened & Q(kind=ReviewKind.SECOND_OPINION.value)
    return {
        "new": here & opened & ~PUT_OFF,
        "second": second & (Q(requested_by__isnull=True) | ~Q(requested_by=reader.user)),
        "returned": here & ((opened & PUT_OFF) | due),
        "snoozed": Q(kind__in=LESSON_KINDS) & asleep & ~due,
        "mine": Q(kind__in=LESSON_KINDS, status__in=UNRESOLVED) & mine,
    }[name]


def counts(reader: Reader) -> dict[str, int]:
    """How many questions each tab holds, in one read."""
    tallies = {name: Count("pk", filter=_tab(name, reader)) for name in TABS}
    return ReviewItem.objects.filter(reader.seen, status__in=UNRESOLVED).aggregate(**tallies)


def items(filters: Filters, reader: Reader) -> QuerySet[ReviewItem]:
    """The questions of a tab that match, the most urgent first; what was skipped stays away for the session."""
    found = ReviewItem.objects.filter(reader.seen, _tab(filters.tab, reader)).select_related(*PEOPLE)
    if filters.tab not in ("mine", "snoozed"):
        found = found.exclude(pk__in=reader.skipped)
    if filters.kind:
        found = found.filter(kind=filters.kind)
    lessons = _lessons(filters)
    if lessons is not None:
        found = found.filter(subject__in=lessons.values("pk"))
    return found.order_by("-priority", "created_at", "pk")


def _lessons(filters: Filters) -> QuerySet[Lesson] | None:
    """The lessons that match; None where nothing is asked for."""
    found = None
    if filters.words:
        found = Lesson.objects.filter(_about(filters.words))
    if filters.project:
        work = Interaction.objects.filter(project=filters.project)
        found = (Lesson.objects.all() if found is None else found).filter(source_interaction__in=work.values("pk"))
    return found


def _about(words: str) -> Q:
    """Each word, or the beginning of one, in any order."""
    apart = words.translate(str.maketrans(JOINERS, " " * len(JOINERS)))
    beginnings = " & ".join(f"{word}:*" for word in re.findall(r"\w+", apart))
    if not beginnings:
        return Q(text__icontains=words)
    return Q(search=SearchQuery(beginnings, config="english", search_type="raw"))


def page(filters: Filters, reader: Reader, after: UUID | None) -> tuple[list[ReviewItem], UUID | None]:
    """The questions after one, and the one to go on after; it costs the same wherever in the queue it is."""
    found = items(filters, reader)
    last = ReviewItem.objects.filter(pk=after).values_list("priority", "created_at").first() if after else None
    if last is not None and after is not None:
        found = found.filter(_beyond(*last, after))
    shown = list(found[: PAGE + 1])
    return shown[:PAGE], shown[PAGE - 1].pk if len(shown) > PAGE else None


def _beyond(priority: float, created_at: datetime, pk: UUID) -> Q:
    tied = Q(created_at__gt=created_at) | Q(created_at=created_at, pk__gt=pk)
    return Q(priority__lte=priority) & (Q(priority__lt=priority) | tied)


def rows(found: Collection[ReviewItem], reader: Reader) -> list[Row]:
    """With their lessons; a question whose lesson is gone is left out."""
    lessons = Lesson.objects.select_related("lessonstanding", "account").in_bulk([item.subject for item in found])
    return [
        Row(item=item, lesson=lessons[item.subject], holder=holder_of(item, reader.user))
        for item in found
        if item.subject in lessons
    ]


def projects(own: Q) -> list[tuple[UUID, str]]:
    """The projects to filter by, as `account/project`."""
    found = Project.objects.filter(own).order_by("account__slug", "slug").values_list("pk", "account__slug", "slug")
    return [(pk, f"{account}/{slug}") for pk, account, slug in found[:PROJECTS]]


def today(user: int) -> Today:
    """Decisions that stand. A pause of over ten minutes is no time to decide in, and what is decided at once is one."""
    ((decided, median),) = fetch(
        """
        SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY gap) FILTER (WHERE gap BETWEEN 0.5 AND 600)
        FROM (
            SELECT extract(epoch FROM a.created_at - lag(a.created_at) OVER (ORDER BY a.created_at))::float8 AS gap
            FROM adjudication a
            WHERE a.reviewer_id = %s AND a.created_at >= date_trunc('day', now(), 'UTC') AND a.reverts_id IS NULL
                AND NOT EXISTS (SELECT 1 FROM adjudication u WHERE u.reverts_id = a.id)
        ) AS decisions
        """,
        [user],
    )
    return Today(decided=decided, median=median)


def decided_texts(decisions: Collection[UUID], seen: Q) -> dict[UUID, str]:
    """The lesson that each decision was about, as far as the reader may see it."""
    made = dict(Adjudication.objects.filter(pk__in=decisions).values_list("pk", "subject"))
    texts = dict(Lesson.objects.filter(seen, pk__in=made.values()).values_list("pk", "text"))
    return {pk: texts[subject] for pk, subject in made.items() if subject in texts}
