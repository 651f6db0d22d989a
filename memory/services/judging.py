"""The queue of work that is worth a person's verdict: asked for where it would change most, and where judges disagree.

What an interaction is worth changes with every outcome, so the questions are weighed anew in each run. Everything is
read by index: the newest work of each account, the work of lessons near a threshold, and what is asked already.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.errors import NotFound
from memory.models import Comment, JobRun, ReviewItem
from memory.models.sql import fetch
from memory.models.vocabulary import ReviewKind, ReviewStatus, Role
from memory.services import questions
from memory.services.authority import Person
from memory.services.questions import Question
from memory.services.review_queue import comment
from memory.services.weighing import weigh

JOB: Final = "judging"
KINDS: Final = (ReviewKind.OUTCOME_NEEDED.value, ReviewKind.OUTCOME_CONFLICT.value)
#: Open questions of each kind in an account: more than anybody judges between two runs.
BEST: Final = 200
NEWEST: Final = 200  # interactions of each account that are looked at
NEAR: Final = 400  # lessons nearest to a threshold whose work is looked at
ROWS: Final = 10  # latest pieces of work of such a lesson: they are worth about the same, one of them is enough
OUTCOMES: Final = 4000  # latest outcomes among which disagreements are sought
SKIPPED: Final = "skipped_by"  # who could not tell, in the parts of a question's priority
VALUE: Final = "severity"  # what a verdict is worth, likewise: the order of this queue
PRIVATE: Final = "Private data: "  # how a comment begins that asks for an erasure


@dataclass(frozen=True, kw_only=True)
class Work:
    """A piece of work that could be judged, or judged anew."""

    interaction: UUID
    account_id: UUID
    since: datetime  # when the question came to be: an answer that is younger stands
    value: float = 0.0  # of a verdict, in [0, 1]


# The lessons of one step of the round over all standings that are nearest to a threshold of their policy.
_NEAR = """
    SELECT s.lesson_id FROM (
        SELECT * FROM lesson_standing WHERE lesson_id > %(after)s ORDER BY lesson_id LIMIT %(batch)s
    ) s JOIN lesson l ON l.id = s.lesson_id AND l.state IN ('active', 'quarantined')
    WHERE s.wins + s.losses > 0
    ORDER BY CASE
        WHEN s.s IS NULL THEN 1.0 / (1 + coalesce((s.evidence->'epoch'->>'losses')::int, 0))
        WHEN l.state = 'quarantined' THEN abs(s.s - %(release)s)
        ELSE least(abs(s.s - %(trial)s), abs(s.s - %(quarantine)s)) END, s.lesson_id LIMIT %(near)s
"""
_END = """
    SELECT lesson_id FROM (SELECT lesson_id FROM lesson_standing WHERE lesson_id > %s ORDER BY lesson_id LIMIT %s) batch
    ORDER BY lesson_id DESC LIMIT 1
"""
_CANDIDATES = """
    SELECT n.id FROM account a CROSS JOIN LATERAL (
        SELECT id FROM interaction WHERE account_id = a.id ORDER BY id DESC LIMIT %(newest)s
    ) n
    UNION SELECT w.interaction_id FROM unnest(%(lessons)s::uuid[]) AS l(id) CROSS JOIN LATERAL (
        SELECT interaction_id FROM lesson_usage WHERE lesson_id = l.id AND exposure IN ('served', 'probation')
        ORDER BY interaction_id DESC LIMIT %(rows)s
    ) w
    UNION SELECT subject FROM review_item WHERE kind = 'outcome_needed' AND status IN ('open', 'snoozed')
"""
# What can be judged: there is an answer to look at, and no caller's word stands.
_UNJUDGED = """
    SELECT i.id, i.account_id, coalesce(c.created_at, i.created_at)
    FROM interaction i LEFT JOIN LATERAL (
        SELECT signal, created_at FROM outcome WHERE interaction_id = i.id AND source = 'caller'
        ORDER BY sequence DESC LIMIT 1
    ) c ON true
    WHERE i.id = ANY(%s) AND i.response <> '' AND coalesce(c.signal, 'retracted') = 'retracted'
"""
# Where the latest words of a caller and of the machine have opposite signs.
_DISPUTED = """
    SELECT i.id, i.account_id, greatest(c.created_at, m.created_at)
    FROM (
        SELECT interaction_id FROM (SELECT interaction_id, source FROM outcome ORDER BY id DESC LIMIT %s) recent
        WHERE source IN ('caller', 'machine')
        UNION SELECT subject FROM review_item WHERE kind = 'outcome_conflict' AND status IN ('open', 'snoozed')
    ) t JOIN interaction i ON i.id = t.interaction_id
        CROSS JOIN LATERAL (
            SELECT reward, created_at FROM outcome WHERE interaction_id = i.id AND source = 'caller'
            ORDER BY sequence DESC LIMIT 1
        ) c
        CROSS JOIN LATERAL (
            SELECT reward, created_at FROM outcome WHERE interaction_id = i.id AND source = 'machine'
            ORDER BY sequence DESC LIMIT 1
        ) m
    WHERE c.reward * m.reward < 0
"""


def run() -> dict[str, Any]:
    """Asks for the verdicts that would change most, and withdraws what is idle; returns the figures of the run.

    A store with more lessons than `SONDER_JOB_PROBES` is looked through in steps, one a run; the work that was found
    worth a verdict in an earlier step stays in the contest.
    """
    lessons, cursor = _step()
    bounds = {"lessons": lessons, "newest": NEWEST, "rows": ROWS}
    found = [pk for (pk,) in fetch(_CANDIDATES, bounds)]
    unjudged = _valued(fetch(_UNJUDGED, [found]))
    needed = _best(work for work in unjudged if work.value > 0)
    disputed = _valued(fetch(_DISPUTED, [OUTCOMES]))
    figures = {
        "looked_at": len(found),
        "needed": _ask(ReviewKind.OUTCOME_NEEDED, needed, possible={work.interaction for work in unjudged}),
        "disputed": _ask(
            ReviewKind.OUTCOME_CONFLICT, _best(disputed), possible={work.interaction for work in disputed}
        ),
    }
    return {**figures, "cursor": str(cursor)}


def _step() -> tuple[list[UUID], UUID]:
    """The lessons nearest to a threshold in the next part of the standings, and where the run after this goes on."""
    last = JobRun.objects.filter(job=JOB, figures__has_key="cursor").order_by("-started_at").first()
    after, settings = UUID(last.figures["cursor"]) if last else UUID(int=0), conf.current()
    levels = {name: math.log(getattr(settings, f"{name}_odds")) for name in ("trial", "quarantine", "release")}
    lessons = fetch(_NEAR, {"after": after, "batch": settings.job_probes, "near": NEAR, **levels})
    end = fetch(_END, [after, settings.job_probes])
    beyond = end and fetch("SELECT 1 FROM lesson_standing WHERE lesson_id > %s LIMIT 1", [end[0][0]])
    return [pk for (pk,) in lessons], end[0][0] if beyond else UUID(int=0)


def _valued(rows: Iterable[tuple[Any, ...]]) -> list[Work]:
    """With what a verdict on each would be worth: as much as it is for the lesson on which most hangs."""
    works = {row[0]: Work(interaction=row[0], account_id=row[1], since=row[2]) for row in rows}
    weighed = weigh(works)
    return [
        Work(
            interaction=work.interaction,
            account_id=work.account_id,
            since=work.since,
            value=weighed[pk][0].information.value if pk in weighed else 0.0,
        )
        for pk, work in works.items()
    ]


def _best(works: Iterable[Work]) -> list[Work]:
    """The most valuable of each account, newer ones first among equals."""
    chosen, taken = [], Counter[UUID]()
    for work in sorted(works, key=lambda work: (work.value, work.interaction), reverse=True):
        if taken[work.account_id] < BEST:
            taken[work.account_id] += 1
            chosen.append(work)
    return chosen


@transaction.atomic
def _ask(kind: ReviewKind, chosen: Collection[Work], possible: Collection[UUID]) -> dict[str, int]:
    """Opens questions, weighs the open ones anew, and withdraws those that are answered or outdone."""
    wanted = {work.interaction: work for work in chosen}
    open_ones = list(ReviewItem.objects.filter(kind=kind.value, status__in=questions.UNRESOLVED))
    _weigh_anew([item for item in open_ones if item.subject in wanted], wanted)
    known = {item.subject for item in open_ones}
    asked = questions.ask(_question(kind, work) for work in chosen if work.interaction not in known)
    idle = [item.subject for item in open_ones if item.subject not in wanted and not _kept(item, possible)]
    return {"asked": asked, "withdrawn": questions.withdraw([kind], idle)}


def _question(kind: ReviewKind, work: Work) -> Question:
    return Question(
        kind=kind, subject=work.interaction, account_id=work.account_id, severity=work.value, since=work.since
    )


def _kept(item: ReviewItem, possible: Collection[UUID]) -> bool:
    """Whether somebody has to do with a question that can still be answered: then it is not withdrawn for a better."""
    held = item.claimed_by_id is not None or item.status == ReviewStatus.SNOOZED.value
    return item.subject in possible and (held or SKIPPED in item.priority_parts)


def _weigh_anew(items: Iterable[ReviewItem], works: Mapping[UUID, Work]) -> None:
    """What a verdict is worth is no part of what a person sees of the work, so the versions stay."""
    moved = []
    for item in items:
        value = works[item.subject].value
        if item.priority_parts.get(VALUE) != value:
            item.priority_parts = {**item.priority_parts, VALUE: value}
            moved.append(item)
    ReviewItem.objects.bulk_update(moved, ["priority_parts"])


@transaction.atomic
def skip(item_id: UUID, person: Person) -> None:
    """This person cannot tell: the question is let go and not offered to them again. Raises NotFound or Forbidden."""
    item = ReviewItem.objects.select_for_update().filter(pk=item_id, kind__in=KINDS).first()
    if item is None:
        raise NotFound("There is no such question.")
    person.need(Role.JUDGE, item.account_id)
    skipped = {*item.priority_parts.get(SKIPPED, ()), person.user_id}
    item.priority_parts = {**item.priority_parts, SKIPPED: sorted(skipped)}
    if item.claimed_by_id == person.user_id:
        item.claimed_by = item.claim_expires_at = None
    item.save(update_fields=["priority_parts", "claimed_by", "claim_expires_at"])


def flag_private(interaction_id: UUID, person: Person, note: str) -> Comment:
    """Notes that the text holds something private; an operator erases it. Raises NotFound, Forbidden or Invalid."""
    return comment(interaction_id, person, PRIVATE + (note.strip() or "look at the text."))
