"""A typed client of Sonder's HTTP API, for programs that call it and for those that await it.

    with Sonder("http://127.0.0.1:8000", key) as sonder:
        with sonder.interaction("Make the worker survive a lost connection", project="api") as it:
            answer = agent(it.task, context=it.context)
            it.respond(answer)
            it.outcome("tests_passed")

It needs httpx alone, and nothing of the server. `loop`, `knowledge` and `teamwork` have every request once; `Sonder`
and `AsyncSonder` send them.
"""

from sonder_client.answers import (
    Considered,
    Fact,
    Interaction,
    Lesson,
    Outcome,
    Preference,
    ProjectFact,
    ProjectSummary,
    Reported,
    Retrieved,
    Session,
    SessionDetail,
    SessionTitle,
    Started,
    StatedPreference,
    Task,
    TaskEvent,
    Turn,
)
from sonder_client.async_client import AsyncSonder, AsyncWork
from sonder_client.call import UNSET
from sonder_client.client import Sonder, Work
from sonder_client.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    SonderError,
    Throttled,
    Unauthorized,
    Unavailable,
    Unexpected,
    Unreachable,
)
from sonder_client.retries import Retries

__all__ = [
    "UNSET",
    "AsyncSonder",
    "AsyncWork",
    "Conflict",
    "Considered",
    "Fact",
    "Forbidden",
    "Interaction",
    "Invalid",
    "Lesson",
    "NotFound",
    "Outcome",
    "Preference",
    "ProjectFact",
    "ProjectSummary",
    "Refused",
    "Reported",
    "Retries",
    "Retrieved",
    "Session",
    "SessionDetail",
    "SessionTitle",
    "Sonder",
    "SonderError",
    "Started",
    "StatedPreference",
    "Task",
    "TaskEvent",
    "Throttled",
    "Turn",
    "Unauthorized",
    "Unavailable",
    "Unexpected",
    "Unreachable",
    "Work",
]
