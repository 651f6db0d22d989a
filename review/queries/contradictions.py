"""Two lessons that may say opposite things: each with its record, how often they met, and what was said before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from string import ascii_uppercase
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memory.models import Adjudication, Contradiction, Interaction, Lesson, LessonStanding, ReviewItem
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind, ReviewStatus
from memory.rules.health import Interval, wilson
from memory.services.questions import UNRESOLVED
from review.charts import Overlap
from review.queries.outcomes import standing_of

TOGETHER: Final = 2  # interactions with both that are shown
SET: Final = 12  # lessons of one set that are shown
BACK: Final = 5  # earlier wordings of each side among which an earlier verdict is sought


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two."""

    name: str  # A or B
    lesson: Lesson
    servings: int
    last_served: datetime | None

    @property
    def standing(self) -> LessonStanding | None:
        return standing_of(self.lesson)

    @property
    def wins(self) -> int:
        return self.standing.wins if self.standing else 0

    @property
    def losses(self) -> int:
        return self.standing.losses if self.standing else 0

    @property
    def n(self) -> int:
        return self.wins + self.losses

    @property
    def interval(self) -> Interval:
        return wilson(self.wins, self.n)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A lesson of a set."""

    name: str  # A and B are the pair that is looked at, C and so on the others
    lesson: Lesson

    @property
    def standing(self) -> LessonStanding | None:
        return standing_of(self.lesson)


@dataclass(frozen=True, kw_only=True)
class Group:
    """A set of lessons that open pairs connect."""

    members: tuple[Member, ...]
    others: tuple[tuple[UUID, str], ...]  # its other open pairs, each with the names of its sides


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """What was decided when one of the two had another wording."""

    side: str  # A or B: the one that has changed since
    before: Lesson  # its wording then
    pair: Contradiction
    decision: Adjudication | None  # None where the verdict was given without one


def queue(accounts: Sequence[UUID] | None) -> QuerySet[ReviewItem]:
    """Open pairs of these accounts and global ones, the most urgent first."""
    seen = Q() if accounts is None else Q(account__isnull=True) | Q(account__in=accounts)
    items = ReviewItem.objects.filter(seen, kind=ReviewKind.CONTRADICTION.value, status=ReviewStatus.OPEN.value)
    return items.select_related("claimed_by").order_by("-priority", "created_at", "id")


def free(accounts: Sequence[UUID] | None, user: int) -> QuerySet[ReviewItem]:
    """Those of the queue that nobody else holds."""
    return queue(accounts).filter(Q(claimed_by__isnull=True) | Q(claimed_by=user) | Q(claim_expires_at__lte=Now()))


def of_one_set(items: QuerySet[ReviewItem], pair: UUID) -> QuerySet[ReviewItem]:
    """Those about a side of this pair: who decides within a set goes on within it."""
    sides = Contradiction.objects.filter(pk=pair).values_list("first", "second").first() or ()
    either = Q(first__in=sides) | Q(second__in=sides)
    return items.filter(subject__in=Contradiction.objects.filter(either, verdict__isnull=True).values("pk"))


def open_item(pair: UUID) -> ReviewItem | None:
    """The unresolved question about a pair."""
    items = ReviewItem.objects.filter(kind=ReviewKind.CONTRADICTION.value, subject=pair, status__in=UNRESOLVED)
    return items.select_related("claimed_by").first()


def sides(pair: Contradiction) -> list[Side]:
    """Both lessons with their servings; fewer than two where one has been erased. In two reads."""
    found = {
        lesson.pk: lesson
        for lesson in Lesson.objects.filter(pk__in=(pair.first, pair.second)).select_related(
            "lessonstanding", "account"
        )
    }
    served = {
        lesson: (n, latest)
        for lesson, n, latest in fetch(
            "SELECT lesson_id, count(*), max(created_at) FROM lesson_usage "
            "WHERE lesson_id = ANY(%s) AND exposure IN ('served', 'probation') GROUP BY 1",
            [list(found)],
        )
    }
    return [
        Side(name=name, lesson=found[pk], servings=n, last_served=latest)
        for name, pk in (("A", pair.first), ("B", pair.second))
        if pk in found
        for n, latest in (served.get(pk, (0, None)),)
    ]


def overlap(a: Side, b: Side) -> Overlap:
    """How often they were handed out alone and together."""
    ((both,),) = fetch(
        """
        SELECT count(*) FROM lesson_usage u JOIN lesson_usage v ON v.interaction_id = u.interaction_id
        WHERE u.lesson_id = %s AND v.lesson_id = %s
            AND u.exposure IN ('served', 'probation') AND v.exposure IN ('served', 'probation')
        """,
        [a.lesson.pk, b.lesson.pk],
    )
    return Overlap(only_a=a.servings - both, both=both, only_b=b.servings - both)


def together(pair: Contradiction, accounts: Sequence[UUID] | None) -> list[Interaction]:
    """The newest work of the reader's accounts that was handed both."""
    both = fetch(
        f"""
        SELECT i.id FROM lesson_usage u JOIN lesson_usage v ON v.interaction_id = u.interaction_id
            JOIN interaction i ON i.id = u.interaction_id
        WHERE u.lesson_id = %(first)s AND v.lesson_id = %(second)s
            AND u.exposure IN ('served', 'probation') AND v.exposure IN ('served', 'probation')
            AND {"true" if accounts is None else "i.account_id = ANY(%(accounts)s)"}
        ORDER BY i.id DESC LIMIT {TOGETHER}
        """,
        {"first": pair.first, "second": pair.second, "accounts": accounts},
    )
    ids = [pk for (pk,) in both]
    return list(Interaction.objects.filter(pk__in=ids).prefetch_related("outcome_set").order_by("-pk")) if ids else []


def group(pair: Contradiction) -> Group | None:
    """The set that the pair belongs to: live lessons that open pairs connect. None where it is the pair alone."""
    rows = fetch(
        """
        WITH RECURSIVE reached(id) AS (
            SELECT unnest(ARRAY[%(first)s, %(second)s]::uuid[])
            UNION
            SELECT l.id FROM reached r
                JOIN contradiction c ON (c.first = r.id OR c.second = r.id) AND c.verdict IS NULL
                JOIN lesson l ON l.id = CASE WHEN c.first = r.id THEN c.second ELSE c.first END
                    AND l.state IN ('candidate', 'active', 'quarantined')
        ), few AS (SELECT id FROM reached LIMIT %(set)s)
        SELECT c.id, c.first, c.second FROM contradiction c
            JOIN few one ON one.id = c.first JOIN few other ON other.id = c.second
        WHERE c.verdict IS NULL ORDER BY c.id
        """,
        {"first": pair.first, "second": pair.second, "set": SET},
    )
    ids = sorted({side for _, *sides in rows for side in sides} - {pair.first, pair.second})
    if not ids:
        return None
    lessons = Lesson.objects.select_related("lessonstanding").in_bulk([pair.first, pair.second, *ids])
    known = [pk for pk in (pair.first, pair.second, *ids) if pk in lessons]
    names = dict(zip(known, ascii_uppercase, strict=False))
    return Group(
        members=tuple(Member(name=name, lesson=lessons[pk]) for pk, name in names.items()),
        others=tuple(
            (pk, " and ".join(sorted((names[first], names[second]))))
            for pk, first, second in rows
            if pk != pair.pk and first in names and second in names
        ),
    )


def earlier(a: Side, b: Side) -> Earlier | None:
    """The verdict on the same two where one of them had an earlier wording; the newest. In at most two reads."""
    rows = fetch(
        """
        WITH RECURSIVE past(side, id, before, step) AS (
            SELECT s.side, l.id, ARRAY[l.supersedes, l.also_supersedes], 0
            FROM (VALUES ('A', %(a)s::uuid), ('B', %(b)s::uuid)) AS s(side, id) JOIN lesson l ON l.id = s.id
            UNION ALL
            SELECT p.side, l.id, ARRAY[l.supersedes, l.also_supersedes], p.step + 1
            FROM past p JOIN lesson l ON l.id = ANY(p.before)
            WHERE p.step < %(back)s
        )
        SELECT c.id, x.side, x.id, y.id FROM past x JOIN past y ON x.side < y.side AND x.step + y.step > 0
            JOIN contradiction c ON c.verdict IS NOT NULL
                AND ((c.first = x.id AND c.second = y.id) OR (c.first = y.id AND c.second = x.id))
        ORDER BY c.id DESC LIMIT 1
        """,
        {"a": a.lesson.pk, "b": b.lesson.pk, "back": BACK},
    )
    if not rows:
        return None
    ((pair, _, was_a, was_b),) = rows
    side, before = ("A", was_a) if was_a != a.lesson.pk else ("B", was_b)
    return Earlier(
        side=side,
        before=Lesson.objects.get(pk=before),
        pair=Contradiction.objects.select_related("decided_by").get(pk=pair),
        decision=decision(pair),
    )


def decision(pair: UUID) -> Adjudication | None:
    """The decision about a pair that stands."""
    made = Adjudication.objects.filter(subject=pair, adjudication__isnull=True, reverts__isnull=True)
    return made.select_related("reviewer").order_by("-created_at", "-id").first()


def successors(decision: Adjudication | None) -> list[Lesson]:
    """The lessons that a verdict made: one in the place of both, or new wordings of either."""
    made = decision.before.get("successors", []) if decision else []
    return list(Lesson.objects.filter(pk__in=made).order_by("pk")) if made else []
