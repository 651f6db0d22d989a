"""What each session was about, as a whole and for each project that was worked on in it.

A summary is made from the stored interactions every time, never from an earlier summary: made again it is the same, and
what an erasure takes away is in no later one.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory import conf
from memory.distillers import DistillerUnavailable, UnusableAnswer
from memory.distillers import active as distillers
from memory.models import Interaction, JobRun, Outcome, Session, SessionProjectSummary
from memory.models.sql import fetch
from memory.rules.privacy import find_private
from memory.rules.signals import Verdict, decide
from memory.rules.summary import Turn, summarise
from memory.rules.text import clean
from memory.services.ids import first_id
from memory.services.scoping import lesson_account, lock_scope

JOB = "summaries"
SESSIONS_AT_ONCE, SECONDS_AT_ONCE = 200, 120.0  # that one run summarises, and takes with a slow model; the next goes on
# The first turns say what a session is about and the last ones how it stands; a day's work has fewer than both.
FIRST_TURNS, LAST_TURNS = 10, 50
MAX_TASK, MAX_RESPONSE, MAX_DETAIL = 4_000, 8_000, 1_000  # characters of each turn that are read
NEVER: Final = UUID(int=0)  # before every id


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """What a run came to."""

    sessions: int  # summaries written
    changed: int  # sessions that an erasure reached meanwhile: nothing was written
    cursor: UUID  # interactions up to this one need no look
    unavailable: str = ""  # why it stopped before the end, if it did

    def figures(self) -> dict[str, Any]:
        """As a job's record keeps it."""
        return {**vars(self), "cursor": str(self.cursor)}


@dataclass(frozen=True, kw_only=True)
class _Due:
    """A session that was worked in since it was last summarised."""

    session: UUID
    account: UUID
    first: UUID  # its first interaction that no summary tells of


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The turns of a session, or of one project in it, with where they came from."""

    ids: tuple[UUID, ...]  # of the interactions, oldest first
    turns: tuple[Turn, ...]


def summarise_due(now: datetime | None = None) -> Summarised:
    """Summarises sessions with interactions that are settled, oldest first; a run goes on where the last one ended.

    An interaction is settled after `SONDER_SUMMARY_AFTER_MINUTES`: by then it was mostly answered and judged.
    """
    settled = first_id((now or timezone.now()) - timedelta(minutes=conf.current().summary_after_minutes))
    cursor = _cursor()
    due = _due(cursor, settled)
    written = changed = 0
    until = time.monotonic() + SECONDS_AT_ONCE
    for row in due:
        if time.monotonic() > until:
            break
        try:
            done = _summarise(row, settled)
        except DistillerUnavailable as refusal:
            return Summarised(sessions=written, changed=changed, cursor=cursor, unavailable=refusal.detail)
        written, changed = written + done, changed + (not done)
        cursor = max(cursor, row.first)
    else:
        if len(due) < SESSIONS_AT_ONCE:
            cursor = max(cursor, settled)
    return Summarised(sessions=written, changed=changed, cursor=cursor)


def _cursor() -> UUID:
    last = JobRun.objects.filter(job=JOB, outcome="done").order_by("-started_at").first()
    return UUID(last.figures["cursor"]) if last else NEVER


def _due(cursor: UUID, settled: UUID) -> list[_Due]:
    """Sessions to summarise, by the age of what is new in them; first those whose summary an erasure emptied."""
    emptied = fetch(
        """
        SELECT s.id, s.account_id FROM session s WHERE s.summarized_through_id IS NULL
            AND EXISTS (SELECT 1 FROM interaction i WHERE i.session_id = s.id AND i.id <= %s) ORDER BY s.id LIMIT %s
        """,
        [cursor, SESSIONS_AT_ONCE],
    )
    worked_in = fetch(
        """
        SELECT s.id, s.account_id, (array_agg(i.id ORDER BY i.id))[1] AS first
        FROM interaction i JOIN session s ON s.id = i.session_id
        WHERE i.id > %s AND i.id < %s AND (s.summarized_through_id IS NULL OR i.id > s.summarized_through_id)
        GROUP BY s.id ORDER BY first LIMIT %s
        """,
        [cursor, settled, SESSIONS_AT_ONCE - len(emptied)],
    )
    rows = [*((*row, NEVER) for row in emptied), *worked_in]
    return [_Due(session=session, account=account, first=first) for session, account, first in rows]


def _summarise(due: _Due, settled: UUID) -> bool:
    """Makes the summaries of one session; False if what was read is gone before they were written."""
    projects = fetch(
        "SELECT DISTINCT project_id FROM interaction WHERE session_id = %s AND project_id IS NOT NULL AND id < %s",
        [due.session, settled],
    )
    whole = _read(due.session, settled)
    if not whole.ids:
        return False
    text = _told(whole)
    parts = {project: _read(due.session, settled, project) for (project,) in projects}
    told = {project: (part, text if part == whole else _told(part)) for project, part in parts.items()}
    return _keep(due, whole, text, told)


def _told(reading: _Reading) -> str:
    """The summary of what was read; a model's is taken only if it is short enough and holds nothing private."""
    most = conf.current().summary_characters
    try:
        text = clean(distillers.summariser()(reading.turns, most)).strip()
    except UnusableAnswer:
        text = ""
    return text if text and len(text) <= most and not find_private(text) else summarise(reading.turns, most)


@transaction.atomic
def _keep(due: _Due, whole: _Reading, text: str, parts: dict[UUID, tuple[_Reading, str]]) -> bool:
    """Writes the summaries, unless something that they tell of was erased meanwhile."""
    lock_scope(lesson_account(due.account))  # an erasure holds it: what it takes away cannot be written after it
    read = set(whole.ids).union(*(part.ids for part, _ in parts.values()))
    if Interaction.objects.filter(pk__in=read).count() != len(read):
        return False
    Session.objects.filter(pk=due.session).update(summary=text, summarized_through=whole.ids[-1])
    SessionProjectSummary.objects.filter(session=due.session).exclude(project__in=parts).delete()
    for project, (part, told) in parts.items():
        SessionProjectSummary.objects.update_or_create(
            session_id=due.session,
            project_id=project,
            defaults={"summary": told, "summarized_through_id": part.ids[-1]},
        )
    return True


def _read(session: UUID, settled: UUID, project: UUID | None = None) -> _Reading:
    """The first and the last turns of a session, or of one project in it."""
    rows = fetch(
        """
        SELECT id, left(task, %(task)s), left(coalesce(response, ''), %(response)s) FROM (
            SELECT id, task, response, row_number() OVER (ORDER BY id) AS nth,
                row_number() OVER (ORDER BY id DESC) AS from_end
            FROM interaction
            WHERE session_id = %(session)s AND id < %(settled)s
                AND (%(project)s::uuid IS NULL OR project_id = %(project)s)
        ) turn WHERE nth <= %(first)s OR from_end <= %(last)s ORDER BY id
        """,
        {
            "session": session, "settled": settled, "project": project, "first": FIRST_TURNS, "last": LAST_TURNS,
            "task": MAX_TASK, "response": MAX_RESPONSE,
        },
    )  # fmt: skip
    said = _judgements([pk for pk, _, _ in rows])
    turns = []
    for pk, task, response in rows:
        signal, detail = said.get(pk, ("", ""))
        turns.append(
            Turn(
                task=_whole(task, MAX_TASK),
                response=_whole(response, MAX_RESPONSE),
                signal=signal,
                detail=_whole(detail, MAX_DETAIL),
            )
        )
    return _Reading(ids=tuple(pk for pk, _, _ in rows), turns=tuple(turns))


def _judgements(interactions: Iterable[UUID]) -> dict[UUID, tuple[str, str]]:
    """The deciding word on each interaction that was judged, and what came with it."""
    said: dict[UUID, list[Outcome]] = {}
    for outcome in Outcome.objects.filter(interaction_id__in=list(interactions)):
        said.setdefault(outcome.interaction_id, []).append(outcome)
    decided = {}
    for interaction, outcomes in said.items():
        verdicts = [Verdict(id=o.pk, source=o.source, sequence=o.sequence, signal=o.signal) for o in outcomes]
        if verdict := decide(verdicts):
            detail = next(o.detail for o in outcomes if o.pk == verdict.id)
            decided[interaction] = (verdict.signal, detail[:MAX_DETAIL])
    return decided


def _whole(text: str, most: int) -> str:
    """The text without a last word that was cut in two: half a secret would not be seen as one."""
    return text if len(text) < most else "".join(text.rpartition(" ")[:1])
