"""Requests of the loop: start, finish, report, look up, and read what was done."""

from datetime import datetime

from sonder_client import answers
from sonder_client.call import UNSET, Call, Id, Listing, Unset, given, id_text, query_of, told


def start_interaction(
    task: str,
    *,
    project: str | None = None,
    session: str | None = None,
    k: int = 5,
    retrieve: bool = True,
    tier: str = "",
    model: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.Started]:
    """Begins a piece of work: records the task and hands out the lessons that fit it. None is a right answer."""
    body = given(task=task, project=project, session=session, k=k, retrieve=retrieve, tier=tier, model=model)
    return Call(
        method="POST", path="interactions/", answer=answers.Started, body=body, idempotency_key=idempotency_key
    )  # fmt: skip


def finish_interaction(
    interaction: Id,
    *,
    response: str | Unset | None = UNSET,
    tokens_in: int | Unset | None = UNSET,
    tokens_out: int | Unset | None = UNSET,
    token_source: str | Unset = UNSET,
    idempotency_key: str | None = None,
) -> Call[answers.Interaction]:
    """Hands in what was answered. What is left out stays as it is."""
    body = told(response=response, tokens_in=tokens_in, tokens_out=tokens_out, token_source=token_source)
    path = f"interactions/{id_text(interaction)}/"
    return Call(
        method="PATCH", path=path, answer=answers.Interaction, body=body, idempotency_key=idempotency_key
    )  # fmt: skip


def record_outcome(
    interaction: Id, signal: str, *, detail: str = "", idempotency_key: str | None = None
) -> Call[answers.Reported]:
    """Reports how the work went. Who judged comes from the key; the latest word of a source counts."""
    path = f"interactions/{id_text(interaction)}/outcomes/"
    body = {"signal": signal, "detail": detail}
    return Call(method="POST", path=path, answer=answers.Reported, body=body, idempotency_key=idempotency_key)


def retrieve_lessons(task: str, *, k: int = 5, explain: bool = False) -> Call[answers.Retrieved]:
    """Looks lessons up without consequences; with `explain`, every candidate and why it is in or out."""
    body = {"task": task, "k": k, "explain": explain}
    return Call(method="POST", path="retrieve/", answer=answers.Retrieved, body=body)


def get_interaction(interaction: Id) -> Call[answers.Interaction]:
    """One piece of work."""
    return Call(method="GET", path=f"interactions/{id_text(interaction)}/", answer=answers.Interaction)


def list_interactions(
    *,
    project: str | None = None,
    session: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
) -> Listing[answers.Interaction]:
    """The account's pieces of work, newest first."""
    query = query_of(project=project, session=session, created_after=created_after, created_before=created_before)
    return Listing(path="interactions/", row=answers.Interaction, query=query)


def list_outcomes(
    *,
    interaction: Id | None = None,
    source: str | None = None,
    signal: str | None = None,
    credited: bool | None = None,
) -> Listing[answers.Outcome]:
    """What was reported in the account, newest first."""
    named = None if interaction is None else id_text(interaction)
    query = query_of(interaction=named, source=source, signal=signal, credited=credited)
    return Listing(path="outcomes/", row=answers.Outcome, query=query)
