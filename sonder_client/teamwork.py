"""Requests about sessions, the turn in one, and tasks."""

from sonder_client import answers
from sonder_client.call import UNSET, Call, Id, Listing, Unset, given, id_text, query_of, told


def list_sessions(*, external_id: str | None = None, project: str | None = None) -> Listing[answers.Session]:
    """The account's conversations, newest first; `external_id` is the agent's own id."""
    return Listing(path="sessions/", row=answers.Session, query=query_of(external_id=external_id, project=project))


def get_session(session: Id) -> Call[answers.SessionDetail]:
    """One conversation with its summaries, and who has the turn."""
    return Call(method="GET", path=f"sessions/{id_text(session)}/", answer=answers.SessionDetail)


def name_session(session: Id, title: str) -> Call[answers.SessionTitle]:
    """Gives a conversation a title; an empty one takes it away."""
    path = f"sessions/{id_text(session)}/"
    return Call(method="PATCH", path=path, answer=answers.SessionTitle, body={"title": title})


def claim_turn(session: Id) -> Call[answers.Turn]:
    """Takes the turn; its token keeps it and gives it back. Conflict says who has it and until when."""
    return _turn(session, action="claim")


def keep_turn(session: Id, token: Id) -> Call[answers.Turn]:
    """Says that this agent is alive and goes on."""
    return _turn(session, action="heartbeat", token=id_text(token))


def release_turn(session: Id, token: Id) -> Call[answers.Turn]:
    """Gives the turn back."""
    return _turn(session, action="release", token=id_text(token))


def _turn(session: Id, **body: str) -> Call[answers.Turn]:
    return Call(method="POST", path=f"sessions/{id_text(session)}/turn/", answer=answers.Turn, body=body)


def list_tasks(
    *,
    status: str | None = None,
    project: str | None = None,
    owner: str | None = None,
    parent: Id | None = None,
    ready: bool | None = None,
) -> Listing[answers.Task]:
    """To-do items, newest first; with `ready`, those that may be begun (or not yet)."""
    whole = None if parent is None else id_text(parent)
    query = query_of(status=status, project=project, owner=owner, parent=whole, ready=ready)
    return Listing(path="tasks/", row=answers.Task, query=query)


def add_task(
    title: str,
    *,
    detail: str | None = None,
    status: str | None = None,
    priority: int | None = None,
    project: str | None = None,
    owner: str | None = None,
    parent: Id | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Task]:
    """Adds a to-do item."""
    whole = None if parent is None else id_text(parent)
    body = given(
        title=title, detail=detail, status=status, priority=priority, project=project, owner=owner, parent=whole
    )  # fmt: skip
    return Call(method="POST", path="tasks/", answer=answers.Task, body=body, idempotency_key=idempotency_key)


def get_task(task: Id) -> Call[answers.Task]:
    """One to-do item."""
    return Call(method="GET", path=f"tasks/{id_text(task)}/", answer=answers.Task)


def change_task(
    task: Id,
    *,
    title: str | Unset = UNSET,
    detail: str | Unset = UNSET,
    status: str | Unset = UNSET,
    priority: int | Unset = UNSET,
    project: str | Unset | None = UNSET,
    owner: str | Unset = UNSET,
    parent: Id | Unset | None = UNSET,
) -> Call[answers.Task]:
    """Changes what is named. Conflict names what must be done before it can start."""
    whole = parent if parent is None or isinstance(parent, Unset) else id_text(parent)
    body = told(
        title=title, detail=detail, status=status, priority=priority, project=project, owner=owner, parent=whole
    )  # fmt: skip
    return Call(method="PATCH", path=f"tasks/{id_text(task)}/", answer=answers.Task, body=body)


def list_task_events(task: Id) -> Listing[answers.TaskEvent]:
    """What happened to a task, newest first."""
    return Listing(path=f"tasks/{id_text(task)}/events/", row=answers.TaskEvent)


def note_task(task: Id, note: str) -> Call[answers.TaskEvent]:
    """Adds a note to a task's journal."""
    path = f"tasks/{id_text(task)}/events/"
    return Call(method="POST", path=path, answer=answers.TaskEvent, body={"note": note})


def add_dependency(task: Id, depends_on: Id) -> Call[answers.Task]:
    """Makes a task wait for another. Conflict names the circle that this would close."""
    path = f"tasks/{id_text(task)}/dependencies/"
    return Call(method="POST", path=path, answer=answers.Task, body={"depends_on": id_text(depends_on)})


def remove_dependency(task: Id, depends_on: Id) -> Call[answers.Task]:
    """Lets a task wait for the other no longer."""
    path = f"tasks/{id_text(task)}/dependencies/{id_text(depends_on)}/"
    return Call(method="DELETE", path=path, answer=answers.Task)
