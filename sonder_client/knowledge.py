"""Requests about preferences and facts."""

from datetime import datetime

from sonder_client import answers
from sonder_client.call import UNSET, Call, Id, Listing, Unset, given, id_text, query_of, told


def list_preferences(
    *, scope: str | None = None, enabled: bool | None = None
) -> Listing[answers.StatedPreference]:  # fmt: skip
    """What people want: `scope` is `global` or `project:<slug>`."""
    return Listing(
        path="preferences/", row=answers.StatedPreference, query=query_of(scope=scope, enabled=enabled)
    )  # fmt: skip


def list_facts(
    *,
    project: str | None = None,
    key: str | None = None,
    q: str | None = None,
    as_of: datetime | None = None,
    believed_at: datetime | None = None,
) -> Listing[answers.ProjectFact]:
    """Facts, newest first: those true at `as_of`, as the store believed at `believed_at` (now unless given)."""
    query = query_of(project=project, key=key, q=q, as_of=as_of, believed_at=believed_at)
    return Listing(path="facts/", row=answers.ProjectFact, query=query)


def record_fact(
    project: str,
    text: str,
    *,
    key: str | None = None,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
) -> Call[answers.ProjectFact]:
    """Believes a fact from now on. Conflict if another one about the same key is valid then."""
    body = given(project=project, text=text, key=key, valid_from=valid_from, valid_until=valid_until)
    return Call(method="POST", path="facts/", answer=answers.ProjectFact, body=body)


def retract_fact(fact: Id) -> Call[answers.ProjectFact]:
    """Stops believing a fact. Conflict if that was done before."""
    return Call(method="POST", path=f"facts/{id_text(fact)}/retract/", answer=answers.ProjectFact, body={})


def correct_fact(
    fact: Id,
    *,
    text: str | Unset = UNSET,
    valid_from: datetime | Unset | None = UNSET,
    valid_until: datetime | Unset | None = UNSET,
) -> Call[answers.ProjectFact]:
    """Retracts a fact and believes the corrected one at one moment. What is left out stays as it was."""
    body = told(text=text, valid_from=valid_from, valid_until=valid_until)
    return Call(method="POST", path=f"facts/{id_text(fact)}/correct/", answer=answers.ProjectFact, body=body)
