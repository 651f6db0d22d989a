"""What was done: interactions, and the sessions that they were part of."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Value
from django.db.models.functions import Least

from memory.models import Interaction, Session, SessionProjectSummary
from memory.services.sonder import values
from memory.services.sonder.job import Job, before, each, following, if_there, ordered_id
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import PROJECT, Skipped
from memory.services.sonder.vectors import Placed, placed, vector_of

LABEL = 40  # characters of a tier, or of where a number of tokens comes from


def interactions(job: Job, rows: Sequence[Row]) -> None:
    """Tasks with their answers; what was pasted into the prompt comes along as it was."""
    known = job.known("interaction", (row.get("id") for row in rows))
    new: dict[str, Interaction] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("id"))
        if before(known, legacy, new):
            return False
        new[legacy] = _interaction(job, row)
        return True

    each(job, "interactions", rows, take)
    Interaction.objects.bulk_create(new.values())
    job.remember("interaction", ((legacy, interaction.pk) for legacy, interaction in new.items()))


def _interaction(job: Job, row: Row) -> Interaction:
    at, task = values.moment(row.get("ts"), job.now), values.needed(row.get("task"))
    lies = placed(job, vector_of(row, "task_embedding", "task_embedding_dim"))
    return Interaction(
        id=ordered_id(at, row["rowid"]),
        created_at=at,
        account=job.account,
        api_key=job.key,
        project=job.project(row.get("project")),
        project_explicit=row.get("project_explicit") == 1,
        session=job.session(row.get("session_id")),
        task=task,
        retrieved_context=values.said(row.get("retrieved_ctx")),
        response=None if row.get("response") is None else values.said(row.get("response")),
        tier=values.said(row.get("tier"), LABEL),
        tokens_in=values.count(row.get("tokens_in")),
        tokens_out=values.count(row.get("tokens_out")),
        token_source=values.said(row.get("token_source"), LABEL),
        **_where(lies),
    )


def _where(lies: Placed | None) -> dict[str, object]:
    return {"task_embedding": lies.vector, "space": lies.space} if lies else {}


def sessions(job: Job, rows: Sequence[Row]) -> None:
    """What a session is called and how it was summed up; what is said here already stays."""
    known = job.known("session", (row.get("session_id") for row in rows))
    through = job.known("interaction", (row.get("summarized_through") for row in rows))
    new: dict[str, UUID] = {}

    def take(row: Row) -> bool:
        legacy = values.ident(row.get("session_id"))
        if before(known, legacy, new):
            return False
        at, session = values.moment(row.get("created_ts"), job.now), job.session(legacy)
        assert session is not None, "what passed as an id names a session"
        session.title = session.title or values.said(row.get("title"), 200)
        session.summary = session.summary or values.said(row.get("summary"))
        session.project = session.project or job.project(row.get("project"))
        if session.summarized_through_id is None:
            session.summarized_through_id = if_there(through, row.get("summarized_through"))
        Session.objects.filter(pk=session.pk).update(created_at=Least("created_at", Value(at)))
        session.save(update_fields=["title", "summary", "project", "summarized_through"])
        new[legacy] = session.pk
        return True

    each(job, "sessions", rows, take, "session_id")
    job.remember("session", new.items())


def summaries(job: Job, rows: Sequence[Row]) -> None:
    """What a session meant for one project. What it meant outside of every project has no place here."""
    sessions = job.known("session", (row.get("session_id") for row in rows))
    through = job.known("interaction", (row.get("summarized_through") for row in rows))

    def take(row: Row) -> bool:
        session = following(sessions, values.ident(row.get("session_id")))
        key = values.needed(row.get("project_key"))
        project = job.project(key.removeprefix(PROJECT)) if key.startswith(PROJECT) else None
        if project is None:
            raise Skipped("no_project")
        _, made = SessionProjectSummary.objects.get_or_create(
            session_id=session,
            project=project,
            defaults={
                "summary": values.needed(row.get("summary")),
                "summarized_through_id": if_there(through, row.get("summarized_through")),
                "created_at": values.moment(row.get("updated_ts"), job.now),
            },
        )
        return made

    each(job, "session_project_summaries", rows, take, "session_id")
