"""The quarantine board: what is kept out or tested and where that stands, what came in bursts, each row's figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Max
from django.http import HttpRequest

from memory.errors import Invalid
from memory.models import Lesson, LessonStanding, ReviewItem, TrustEvent
from memory.models.sql import fetch
from memory.models.vocabulary import TrustEventKind
from memory.rules.bursts import bursts
from memory.rules.description import describe_evidence
from memory.services.bulk_decisions import Wanted, holder_of, versions
from review.access import person_of
from review.charts import Estimate
from review.queries.outcomes import standing_of

SHOWN: Final = 50  # rows of a group
RECENT: Final = "30 days"
BURST: Final = 20  # quarantines within an hour above which they are one row
WITHIN: Final = 3600.0  # seconds
STAGES: Final[dict[str, str]] = {
    "trial": "On trial",
    "new": "New",
    "second": "Second opinion",
    "probation": "On probation",
    "upheld": "Upheld in the last 30 days",
    "freed": "Freed in the last 30 days",
}
BY: Final = ("stage", "project", "model", "week")
UNKNOWN: Final = "Not known"

# Where each lesson stands. The work of its latest credited loss names project and model, where the reader may see it.
_BOARD = """
    WITH freed AS (
        SELECT DISTINCT ON (lesson) lesson, created_at FROM trust_event
        WHERE kind IN ('rehabilitated', 'released_by_reviewer', 'released_to_trial')
            AND created_at > now() - %(recent)s::interval
        ORDER BY lesson, created_at DESC
    ), board AS (
        SELECT l.id, l.state, s.on_trial, s.quarantined_at, s.s, s.losses, s.evidence, freed.created_at AS freed_at
        FROM lesson l LEFT JOIN lesson_standing s ON s.lesson_id = l.id LEFT JOIN freed ON freed.lesson = l.id
        WHERE (l.state = 'quarantined' OR (l.state = 'active' AND (s.on_trial OR freed.lesson IS NOT NULL)))
            AND (%(everything)s OR l.account_id IS NULL OR l.account_id = ANY(%(accounts)s))
    )
    SELECT b.id,
        CASE
            WHEN second.id IS NOT NULL THEN 'second'
            WHEN b.state = 'active' AND b.on_trial THEN 'trial'
            WHEN b.state = 'active' THEN 'freed'
            WHEN question.id IS NULL AND upheld.created_at > now() - %(recent)s::interval THEN 'upheld'
            WHEN sampled.yes THEN 'probation'
            WHEN question.id IS NOT NULL THEN 'new'
            ELSE 'probation'
        END AS stage,
        CASE b.state WHEN 'quarantined' THEN b.quarantined_at ELSE coalesce(b.freed_at, opened.created_at) END,
        coalesce(b.s, 0), coalesce(b.losses, 0), {label}
    FROM board b
        LEFT JOIN review_item question
            ON question.subject = b.id AND question.kind = 'quarantine' AND question.status IN ('open', 'snoozed')
        LEFT JOIN review_item second
            ON second.subject = b.id AND second.kind = 'second_opinion' AND second.status IN ('open', 'snoozed')
        LEFT JOIN LATERAL (
            SELECT created_at FROM trust_event e WHERE e.lesson = b.id AND b.state = 'quarantined'
                AND e.kind IN ('upheld', 'quarantined_by_reviewer') AND e.created_at >= b.quarantined_at
            ORDER BY e.created_at DESC LIMIT 1
        ) upheld ON true
        LEFT JOIN LATERAL (
            SELECT created_at FROM trust_event e WHERE e.lesson = b.id AND b.state = 'active'
                AND e.kind = 'trial_opened' ORDER BY e.created_at DESC LIMIT 1
        ) opened ON true
        LEFT JOIN LATERAL (
            SELECT true AS yes FROM lesson_usage u WHERE u.lesson_id = b.id AND b.state = 'quarantined'
                AND u.exposure = 'probation' AND u.created_at >= b.quarantined_at LIMIT 1
        ) sampled ON true
        {work}
    ORDER BY coalesce(b.s, 0) DESC, coalesce(b.losses, 0) DESC, b.id
"""
_WORK = """
        LEFT JOIN LATERAL (
            SELECT i.project_id, i.model
            FROM jsonb_array_elements(b.evidence -> 'rows') WITH ORDINALITY AS r(row, n)
                JOIN interaction i ON i.id = (r.row ->> 'interaction')::uuid
            WHERE (r.row ->> 'reward')::float8 < 0 AND (%(everything)s OR i.account_id = ANY(%(accounts)s))
            ORDER BY r.n LIMIT 1
        ) work ON true
        LEFT JOIN project ON project.id = work.project_id
"""
_LABELS: Final = {
    "stage": ("''", ""),
    "project": ("coalesce(project.slug, '')", _WORK),
    "model": ("coalesce(work.model, '')", _WORK),
    "week": ("coalesce(to_char(date_trunc('week', b.quarantined_at, 'UTC'), 'YYYY-MM-DD'), '')", ""),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a lesson stands on the board."""

    lesson: UUID
    stage: str  # one of STAGES
    since: datetime | None  # quarantined, freed or on trial since
    label: str  # of the group, where the board is not grouped by stage


@dataclass(frozen=True, kw_only=True)
class Burst:
    """Quarantines that came so close together that one cause is likelier than many."""

    first: datetime
    last: datetime
    lessons: Sequence[UUID]

    @property
    def name(self) -> str:
        """As a form and an address name it."""
        return f"{self.first.timestamp():.6f}:{self.last.timestamp():.6f}"


@dataclass(frozen=True, kw_only=True)
class Group:
    """A part of the board: bursts first, then the rows that are shown, the worst first."""

    name: str
    places: Sequence[Place]
    bursts: Sequence[Burst] = ()
    n: int = 0  # lessons in it, also those that are not shown


@dataclass(frozen=True, kw_only=True)
class Row:
    """A lesson on the board."""

    place: Place
    lesson: Lesson
    standing: LessonStanding | None
    item: ReviewItem | None  # the question that is open about it, if one is
    version: int
    holder: str  # somebody else who has it now; empty for nobody
    estimate: Estimate  # its losses beside what was to be expected
    cohort: float | None  # lessons handed out together in the work that counts, on average

    @property
    def value(self) -> str:
        """As a form marks it."""
        return f"{self.lesson.pk}:{self.item.pk if self.item else ''}:{self.version}"

    @property
    def others(self) -> str:
        """How many lessons it was handed out with."""
        return "" if self.cohort is None else f"{max(0.0, self.cohort - 1):.1f}".removesuffix(".0")


def places(accounts: Sequence[UUID] | None, by: str) -> list[Place]:
    """Every lesson that is kept out, tested, or was freed lately, the worst first."""
    label, work = _LABELS[by]
    rows = fetch(
        _BOARD.format(label=label, work=work),
        {"recent": RECENT, "everything": accounts is None, "accounts": list(accounts or [])},
    )
    return [Place(lesson=pk, stage=stage, since=since, label=label) for pk, stage, since, _, _, label in rows]


def groups(found: Sequence[Place], by: str) -> list[Group]:
    """By stage in the order of STAGES; else by label, those with the most lessons first, and the newest week first."""
    if by == "stage":
        named = {name: [place for place in found if place.stage == stage] for stage, name in STAGES.items()}
        together = _bursts([place for place in found if place.stage == "new"])
        return [_group(name, held, together if name == STAGES["new"] else []) for name, held in named.items()]
    labelled: dict[str, list[Place]] = {}
    for place in found:
        labelled.setdefault(place.label or UNKNOWN, []).append(place)
    order = sorted(labelled.items(), key=lambda part: part[0] if by == "week" else len(part[1]), reverse=True)
    return [_group(f"Week of {name}" if by == "week" else name, held, []) for name, held in order]


def _group(name: str, held: Sequence[Place], together: Sequence[Burst]) -> Group:
    collapsed = {lesson for each in together for lesson in each.lessons}
    alone = [place for place in held if place.lesson not in collapsed]
    return Group(name=name, places=alone[:SHOWN], bursts=together, n=len(held))


def _bursts(new: Iterable[Place]) -> list[Burst]:
    """More than 20 quarantines within an hour."""
    timed = sorted((place.since, place.lesson) for place in new if place.since)
    stretches = bursts([since.timestamp() for since, _ in timed], more_than=BURST, within=WITHIN)
    return [
        Burst(
            first=timed[stretch.start][0],
            last=timed[stretch.stop - 1][0],
            lessons=tuple(timed[n][1] for n in stretch),
        )
        for stretch in stretches
    ]


def within(found: Sequence[Place], name: str) -> list[Place]:
    """The new ones of one burst, opened up. Raises Invalid for what names none."""
    first, last = _moments(name)
    return [place for place in found if place.stage == "new" and place.since and first <= place.since <= last]


def _moments(name: str) -> tuple[datetime, datetime]:
    try:
        first, last = (datetime.fromtimestamp(round(float(part), 6), UTC) for part in name.split(":"))
    except (ValueError, OverflowError):
        raise Invalid.field("marked", "reload the page and mark the rows again.") from None
    return first, last


def burst(request: HttpRequest, name: str) -> list[Wanted]:
    """The lessons of a burst, as they stand now, for a decision about all of them."""
    accounts = person_of(request).accounts()
    lessons = [place.lesson for place in within(places(accounts, "stage"), name)]
    items = _items(lessons)
    return [
        Wanted(subject=lesson, item=items[lesson].pk, version=items[lesson].version)
        for lesson in lessons
        if lesson in items
    ]


def rows(found: Sequence[Place], user: int) -> dict[UUID, Row]:
    """The rows of these places, by lesson, in a constant number of reads."""
    ids = [place.lesson for place in found]
    lessons = Lesson.objects.select_related("lessonstanding").in_bulk(ids)
    items, seen = _items(ids), versions(ids)
    return {
        place.lesson: _row(place, lessons[place.lesson], items.get(place.lesson), seen[place.lesson], user)
        for place in found
        if place.lesson in lessons
    }


def _items(lessons: Sequence[UUID]) -> dict[UUID, ReviewItem]:
    """The question about each: that of its quarantine, else the most urgent other one that is open."""
    found = ReviewItem.objects.filter(subject__in=lessons, status__in=("open", "snoozed"))
    ordered = sorted(found.select_related("claimed_by"), key=lambda item: (item.kind == "quarantine", item.priority))
    return {item.subject: item for item in ordered if item.kind not in ("second_opinion", "contradiction")}


def _row(place: Place, lesson: Lesson, item: ReviewItem | None, version: int, user: int) -> Row:
    standing = standing_of(lesson)
    evidence: dict[str, Any] = standing.evidence if standing else {}
    described = describe_evidence(evidence) if evidence.get("policy") else None
    cohorts = [row["cohort"] for row in evidence.get("rows", ()) if row.get("cohort")]
    return Row(
        place=place,
        lesson=lesson,
        standing=standing,
        item=item,
        version=item.version if item else version,
        holder=holder_of(item, user) if item else "",
        estimate=Estimate(
            label="",
            losses=standing.losses if standing else 0,
            n=standing.losses + standing.wins if standing else 0,
            expected=described.base_rate if described else None,
        ),
        cohort=sum(cohorts) / len(cohorts) if cohorts else None,
    )


def empty_since() -> datetime | None:
    """When the last lesson left quarantine, or the last was put there; None if none ever was."""
    kinds = [
        TrustEventKind.REHABILITATED, TrustEventKind.RELEASED_BY_REVIEWER, TrustEventKind.RELEASED_TO_TRIAL,
        TrustEventKind.QUARANTINED, TrustEventKind.QUARANTINED_BY_REVIEWER, TrustEventKind.REJECTED_BY_REVIEWER,
    ]  # fmt: skip
    found: datetime | None = TrustEvent.objects.filter(kind__in=kinds).aggregate(latest=Max("created_at"))["latest"]
    return found


def as_one(found: Sequence[Group]) -> list[Place]:
    """Every place that is shown."""
    return [place for group in found for place in group.places]
