"""A lesson's page: its standing in words, the evidence, what happened to it, and what a person may do now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, F, OuterRef, Q, Subquery, UUIDField, Value, When

from memory.models import (
    Adjudication,
    Comment,
    Contradiction,
    Lesson,
    LessonUsage,
    ReviewItem,
    TrustEvent,
    UsageExemption,
)
from memory.models.sql import fetch
from memory.models.vocabulary import LessonState, ReviewStatus, TrustEventKind, Verdict
from memory.services.adjudication import version_of
from memory.services.quarantine import held_by_person
from memory.services.reading import evidence_of
from review.charts.intervals import Estimate
from review.charts.timeline import Mark, Serving, Span, Timeline
from review.events import event_in_words
from review.queries.actors import names
from review.queries.blind import withheld

UNRESOLVED: Final = (ReviewStatus.OPEN.value, ReviewStatus.SNOOZED.value)
WINDOW: Final = (
    2000  # judged servings that charts look at: the record of a busy lesson is longer than any reading of it
)
HISTORY: Final = 50
TICKS: Final = 200  # judged servings on the strip

Accounts = Sequence[UUID] | None  # that the reader may see; None for all


@dataclass(frozen=True, kw_only=True)
class Row:
    """A judged serving that the decision rests on, and the work behind it where the reader may see that."""

    figures: Mapping[str, Any]  # as the evidence has it, see docs/evidence.md
    task: str | None  # None: another account's work
    usage: UUID | None
    lost: bool


@dataclass(frozen=True, kw_only=True)
class Served:
    """How often it was handed out and held back."""

    servings: int
    withheld: int
    latest: datetime | None


@dataclass(frozen=True, kw_only=True)
class Segment:
    """The record in one part of the work."""

    by: str  # project, model, tier or week
    estimate: Estimate


def open_item(lesson: UUID) -> ReviewItem | None:
    """The most urgent unresolved question about it."""
    items = ReviewItem.objects.filter(subject=lesson, status__in=UNRESOLVED).select_related("claimed_by")
    return items.order_by("-priority", "created_at").first()


def version(lesson: UUID, item: ReviewItem | None) -> int:
    """What a decision made from the page must still find."""
    return item.version if item else version_of(lesson)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a decision rests on, and how much of it the reader may see row by row."""

    figures: dict[str, Any]  # computed now; they count every row
    rows: list[Row]  # newest first
    elsewhere: int  # rows of accounts that are not the reader's
    withheld: frozenset[UUID]  # the reader's own work whose verdict is withheld from view


def evidence(lesson: Lesson, accounts: Accounts, by_person: bool) -> Evidence:
    """The evidence, computed now."""
    found = evidence_of(lesson, by_person)
    mine = [row for row in found["rows"] if accounts is None or UUID(row["account"]) in set(accounts)]
    hidden = frozenset(interaction for row in mine if withheld(interaction := UUID(row["interaction"]), row["source"]))
    seen = [row for row in mine if UUID(row["interaction"]) not in hidden]
    ids = [UUID(row["interaction"]) for row in seen]
    usages = LessonUsage.objects.filter(lesson=lesson, interaction__in=ids)
    known = {work: (pk, task) for work, pk, task in usages.values_list("interaction", "pk", "interaction__task")}
    rows = [
        Row(
            figures={**row, "at": datetime.fromisoformat(row["at"])},
            task=task,
            usage=usage,
            lost=row["reward"] < 0,
        )
        for row in seen
        for usage, task in (known.get(UUID(row["interaction"]), (None, None)),)
    ]
    return Evidence(figures=found, rows=rows, elsewhere=len(found["rows"]) - len(mine), withheld=hidden)


def segments(lesson: UUID, accounts: Accounts) -> list[Segment]:
    """The record by project, model, tier and week, over its latest judged servings; parts with the most rows first.

    What other accounts call their projects and models is theirs: their rows are one part, "other accounts".
    """
    own = "true" if accounts is None else "i.account_id = ANY(%s)"
    found = fetch(
        f"""
        WITH latest AS MATERIALIZED (
            SELECT interaction_id, reward, expected_loss, outcome_at FROM lesson_usage
            WHERE lesson_id = %s AND exposure IN ('served', 'probation') AND weight > 0 AND reward IS NOT NULL
            ORDER BY credit_seq DESC LIMIT {WINDOW}
        ), named AS (
            SELECT u.reward, u.expected_loss,
                CASE WHEN NOT ({own}) THEN 'other accounts' ELSE coalesce(p.slug, 'no project') END AS project,
                CASE WHEN NOT ({own}) THEN 'other accounts' ELSE coalesce(i.model, 'not named') END AS model,
                CASE WHEN NOT ({own}) THEN 'other accounts' ELSE coalesce(i.tier, 'not named') END AS tier,
                to_char(date_trunc('week', u.outcome_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD') AS week
            FROM latest u JOIN interaction i ON i.id = u.interaction_id LEFT JOIN project p ON p.id = i.project_id
        )
        SELECT CASE WHEN grouping(project) = 0 THEN 'project' WHEN grouping(model) = 0 THEN 'model'
                WHEN grouping(tier) = 0 THEN 'tier' ELSE 'week' END,
            coalesce(project, model, tier, week), count(*), count(*) FILTER (WHERE reward < 0), avg(expected_loss)
        FROM named GROUP BY GROUPING SETS ((project), (model), (tier), (week)) ORDER BY 1, 3 DESC, 2
        """,
        [lesson] + ([] if accounts is None else [list(accounts)] * 3),
    )
    return [
        Segment(
            by=by,
            estimate=Estimate(label=label, losses=lost, n=n, expected=None if expected is None else float(expected)),
        )
        for by, label, n, lost, expected in found
    ]


@dataclass(frozen=True, kw_only=True)
class Life:
    """How often it was handed out, and what came of it when."""

    served: Served
    strip: Timeline
    withheld: frozenset[UUID]  # the reader's own work that has no tick, because its verdict is withheld from view


def life(lesson: Lesson, events: Sequence[TrustEvent], now: datetime, accounts: Accounts) -> Life:
    """Counts over its whole life, its latest judged servings as ticks, and its quarantines as spans. In one read."""
    own = "true" if accounts is None else "i.account_id = ANY(%(accounts)s)"
    rows = fetch(
        f"""
        SELECT c.*, u.outcome_at, u.reward < 0, i.id, u.outcome_source, {own} FROM (
            SELECT count(*) FILTER (WHERE exposure IN ('served', 'probation')),
                count(*) FILTER (WHERE exposure NOT IN ('served', 'probation')),
                max(created_at) FILTER (WHERE exposure IN ('served', 'probation'))
            FROM lesson_usage WHERE lesson_id = %(lesson)s
        ) c LEFT JOIN (
            SELECT * FROM lesson_usage
            WHERE lesson_id = %(lesson)s AND exposure IN ('served', 'probation') AND weight > 0 AND reward <> 0
            ORDER BY credit_seq DESC LIMIT {TICKS}
        ) u ON true LEFT JOIN interaction i ON i.id = u.interaction_id ORDER BY u.credit_seq
        """,
        {"lesson": lesson.pk, "accounts": accounts},
    )
    servings, withheld_ones, latest = rows[0][:3]
    judged = [row[3:] for row in rows if row[3] is not None]
    hidden = frozenset(work for _, _, work, source, mine in judged if mine and withheld(work, source))
    ticks = [Serving(at=at, lost=lost) for at, lost, work, _, _ in judged if work not in hidden]
    marks = [Mark(at=event.created_at, label="edited") for event in events if event.kind == TrustEventKind.EDITED]
    return Life(
        served=Served(servings=servings, withheld=withheld_ones, latest=latest),
        strip=Timeline(servings=ticks, until=now, marks=marks, spans=_quarantines(events)),
        withheld=hidden,
    )


ENTER: Final = {"quarantined", "quarantined_by_reviewer"}
LEAVE: Final = {
    "rehabilitated", "released_by_reviewer", "released_to_trial", "rejected_by_reviewer", "restored_by_reviewer",
    "edited", "undone",
}  # fmt: skip


def _quarantines(events: Sequence[TrustEvent]) -> list[Span]:
    """From each entry to what ended it; `events` are newest first."""
    spans: list[Span] = []
    since: datetime | None = None
    for event in reversed(events):
        if event.kind in ENTER and since is None:
            since = event.created_at
        elif event.kind in LEAVE and since is not None:
            spans.append(Span(kind="quarantine", start=since, end=event.created_at))
            since = None
    return [*spans, Span(kind="quarantine", start=since)] if since else spans


def events(lesson: UUID) -> list[TrustEvent]:
    """What happened to it, newest first."""
    return list(TrustEvent.objects.filter(lesson=lesson).order_by("-created_at", "-id")[:HISTORY])


@dataclass(frozen=True, kw_only=True)
class Told:
    """An event as people read it."""

    event: TrustEvent
    what: str
    who: str


def told(events: Sequence[TrustEvent]) -> list[Told]:
    """What happened, and who did it."""
    known = names(event.actor for event in events)
    return [Told(event=event, what=event_in_words(event.kind), who=known[event.actor]) for event in events]


def kept_out_by_person(lesson: Lesson, events: Sequence[TrustEvent]) -> bool:
    """Whether a person, and not the policy, put it into the quarantine that it is in; `events` are newest first."""
    if lesson.state != LessonState.QUARANTINED:
        return False
    latest = next((event.kind for event in events if event.kind in ENTER), None)
    if latest is None and len(events) == HISTORY:  # it is longer ago than what was read
        return held_by_person(lesson.pk)
    return latest == TrustEventKind.QUARANTINED_BY_REVIEWER


@dataclass(frozen=True, kw_only=True)
class Said:
    """What somebody wrote about it: a comment, or the note of a decision."""

    who: str
    at: datetime
    text: str
    verdict: str  # in words; empty for a comment


def said(lesson: UUID) -> list[Said]:
    """What people wrote, the newest HISTORY of it, oldest first."""
    columns = ("by", "created_at", "body", "kind")
    comments = Comment.objects.filter(subject=lesson).annotate(by=F("author__username"), body=F("text"), kind=Value(""))
    decided = Adjudication.objects.filter(subject=lesson).exclude(note="")
    notes = decided.annotate(by=F("reviewer__username"), body=F("note"), kind=F("verdict"))
    both = comments.values_list(*columns).union(notes.values_list(*columns), all=True).order_by("-created_at")
    return [
        Said(who=who, at=at, text=text, verdict=Verdict(kind).label if kind else "")
        for who, at, text, kind in reversed(both[:HISTORY])
    ]


def comments(subject: UUID) -> list[Comment]:
    """What people wrote about it, oldest first."""
    return list(Comment.objects.filter(subject=subject).select_related("author").order_by("created_at"))


def contradictions(lesson: UUID) -> list[tuple[Contradiction, str]]:
    """The pairs it is a side of, with the other side's text."""
    other = Case(When(first=lesson, then=F("second")), default=F("first"), output_field=UUIDField())
    text = Lesson.objects.filter(pk=OuterRef("other")).values("text")
    pairs = Contradiction.objects.filter(Q(first=lesson) | Q(second=lesson)).annotate(other=other, text=Subquery(text))
    return [(pair, pair.text or "a lesson that is gone") for pair in pairs.order_by("-created_at")[:10]]


def excused(lesson: UUID) -> list[UsageExemption]:
    """Losses that a person took out of its ledger, and nobody put back."""
    made = UsageExemption.objects.filter(usage__lesson=lesson, reverts__isnull=True, usageexemption__isnull=True)
    return list(made.select_related("usage__interaction", "reviewer").order_by("-created_at")[:20])
