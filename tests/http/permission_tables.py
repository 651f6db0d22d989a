"""What each route needs, line by line. `test_permission_matrix.py` asks every route for everybody who could."""

from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A method of the API's, with what it asks for."""

    scope: str
    of: str = "interaction"  # which row of the world `pk` is
    body: dict[str, Any] | None = None  # one that is accepted; a text in braces is an id of the world
    owned: bool = True  # it is about a row of one account


def _read(**more: Any) -> Operation:
    return Operation(scope="read", **more)


def _loop(**more: Any) -> Operation:
    return Operation(scope="loop", **more)


def _govern(**more: Any) -> Operation:
    return Operation(scope="govern", **more)


_CHANGE: Final = {
    "expected_version": 2,
    "text": "I prefer tabs.",
    "evidence": [{"kind": "note", "text": "They said so."}],
    "expected_outcome": "Fewer questions.",
}
API: Final[dict[tuple[str, str], Operation]] = {
    ("GET", "interactions"): _read(owned=False),
    ("POST", "interactions"): _loop(body={"task": "sort"}, owned=False),
    ("GET", "interaction"): _read(),
    ("PATCH", "interaction"): _loop(body={"response": "done"}),
    ("DELETE", "interaction"): Operation(scope="admin"),
    ("POST", "interaction-outcomes"): _loop(body={"signal": "used"}),
    ("GET", "outcomes"): _read(owned=False),
    ("POST", "retrieve"): _loop(body={"task": "sort"}, owned=False),
    ("GET", "lessons"): _read(owned=False),
    ("GET", "lesson"): _read(of="lesson"),
    ("DELETE", "lesson"): Operation(scope="admin", of="lesson"),
    ("GET", "lesson-evidence"): _read(of="lesson"),
    ("GET", "lesson-history"): _read(of="lesson"),
    ("GET", "lesson-neighbours"): _read(of="lesson"),
    ("GET", "preferences"): _read(owned=False),
    ("GET", "refinements"): _read(of="preference"),
    ("POST", "refinements"): _govern(of="preference", body=_CHANGE),
    ("POST", "rollback"): _govern(of="refinement", body={"expected_version": 2}),
    ("GET", "facts"): _read(owned=False),
    ("POST", "facts"): _loop(body={"project": "rockets", "text": "It flies."}, owned=False),
    ("DELETE", "fact"): Operation(scope="admin", of="fact"),
    ("POST", "fact-retract"): _loop(of="fact"),
    ("POST", "fact-correct"): _loop(of="fact", body={"text": "The tank holds 6 t."}),
    ("GET", "sessions"): _read(owned=False),
    ("GET", "session"): _read(of="session"),
    ("PATCH", "session"): _loop(of="session", body={"title": "Talk"}),
    ("POST", "session-turn"): _loop(of="session", body={"action": "claim"}),
    ("GET", "tasks"): _read(owned=False),
    ("POST", "tasks"): _loop(body={"title": "Sort"}, owned=False),
    ("GET", "task"): _read(of="task"),
    ("PATCH", "task"): _loop(of="task", body={"title": "Sort"}),
    ("GET", "task-events"): _read(of="task"),
    ("POST", "task-events"): _loop(of="task", body={"note": "Began."}),
    ("POST", "task-dependencies"): _loop(of="task", body={"depends_on": "{third}"}),
    ("DELETE", "task-dependency"): _loop(of="task"),
    ("GET", "health"): _read(owned=False),
    ("GET", "distillations"): _read(owned=False),
    ("POST", "distillation-retry"): _govern(),
    ("POST", "distillation-cancel"): _govern(),
    ("GET", "contradictions"): _read(owned=False),
    ("GET", "export"): Operation(scope="admin", owned=False),
    ("GET", "prune-plan"): _govern(owned=False),
    ("POST", "prune-apply"): _govern(body={"digest": "{digest}"}),
    ("DELETE", "project"): Operation(scope="admin", of="project"),
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page or a form. Whoever has a higher role may do it too; an operator may do everything."""

    role: str  # the least; `person` for everybody who is logged in, whatever their role
    owned: bool = False  # it is about something of one account: other accounts' maintainers are refused
    form: dict[str, Any] = field(default_factory=dict)  # a text in braces is an id of the world


def _view(**more: Any) -> Page:
    return Page(role="viewer", **more)


def _judge(**form: str) -> Page:
    return Page(role="judge", owned=True, form=form)


def _reviewer(**form: str) -> Page:
    return Page(role="reviewer", owned=True, form=form)


def _maintainer(**form: str) -> Page:
    return Page(role="maintainer", owned=True, form=form)


_WHY: Final = {"reason_code": "other", "note": "So."}
_REJECT: Final = {"decision": "reject", "subject": "{lesson}", "expected_version": "{version}", **_WHY}
_RETURN: Final = {"expected_version": "2", **_WHY}
_ALERT: Final = {"alert": "unreviewed", "note": "Ben is back on Monday."}
PAGES: Final[dict[tuple[str, str], Page]] = {
    ("GET", "dashboard"): Page(role="person"),
    ("POST", "seen"): _view(form={"until": "{now}"}),
    ("POST", "dismiss"): _view(form={"notice": "{lesson}"}),
    ("GET", "settings"): _view(),
    ("POST", "settings"): _view(),
    ("GET", "keys"): _view(),
    ("POST", "decide"): _reviewer(**_REJECT),
    ("GET", "ask"): _view(form={"subject": "{lesson}"}),
    ("POST", "undo"): _reviewer(adjudication="{adjudication}"),
    ("GET", "lessons"): _view(),
    ("GET", "lesson"): _view(owned=True),
    ("GET", "inbox"): _view(),
    ("POST", "unskip"): _view(),
    ("GET", "bulk"): _view(),
    ("POST", "bulk"): _view(form={"act": "reject", "marked": "{lesson}::{version}", "confirmed": "1", **_WHY}),
    ("POST", "bulk_undo"): _view(form={"made": "{adjudication}"}),
    ("GET", "item"): _view(owned=True),
    ("POST", "claim"): _reviewer(),
    ("POST", "release"): _view(),  # lets go what the person holds, and nothing else
    ("POST", "skip"): _view(owned=True),  # for their own session
    ("GET", "snooze"): _view(owned=True),
    ("POST", "snooze"): _reviewer(until="worse"),
    ("POST", "wake"): _reviewer(),
    ("GET", "assign"): _view(owned=True),
    ("POST", "assign"): _reviewer(),
    ("POST", "comment"): _judge(text="I have seen it too."),
    ("GET", "duplicate"): _view(owned=True),
    ("POST", "opinion"): _reviewer(decision="approve", expected_version="1"),
    ("GET", "second_opinion"): _view(owned=True),
    ("POST", "second_opinion"): _reviewer(**_REJECT),
    ("GET", "quarantine"): _view(),
    ("GET", "quarantine_export"): _view(),
    ("GET", "contradictions"): _view(),
    ("GET", "contradiction"): _view(owned=True),
    ("POST", "contradiction_skip"): Page(role="reviewer"),  # in their own session, whatever the id
    ("GET", "outcomes"): _view(),
    ("POST", "outcome_skip"): _judge(),
    ("GET", "interactions"): _view(),
    ("GET", "interaction"): _view(owned=True),
    ("GET", "interaction_private"): _judge(),
    ("POST", "interaction_private"): _judge(note="A name."),
    ("GET", "preferences"): _view(),
    ("GET", "preference"): _view(owned=True),
    ("GET", "preference_compare"): _view(owned=True),
    ("GET", "preference_version"): _view(owned=True),
    ("GET", "preference_edit"): _view(owned=True),
    ("POST", "preference_edit"): _maintainer(text="I prefer tabs.", expected_outcome="Fewer.", **_RETURN),
    ("GET", "preference_restore"): _view(owned=True),
    ("POST", "preference_restore"): _maintainer(**_RETURN),
    ("GET", "preference_revert"): _view(owned=True),
    ("POST", "preference_revert"): _maintainer(**_RETURN),
    ("GET", "prune"): _view(),
    ("POST", "prune_replan"): _reviewer(account="{account}"),
    ("GET", "prune_plan"): _view(owned=True),
    ("POST", "prune_apply"): _maintainer(count="0"),
    ("GET", "prune_restore"): _view(owned=True),
    ("POST", "prune_restore"): _maintainer(**_WHY),
    ("GET", "prune_export"): _view(owned=True),
    ("GET", "retrieval"): _view(),
    ("GET", "health"): _view(),
    ("POST", "alert_acknowledge"): Page(role="reviewer", form=_ALERT),
    ("POST", "alert_mind"): Page(role="reviewer", form=_ALERT),
    ("GET", "health_export"): _view(),
    ("GET", "measured"): _view(),
    ("GET", "measured_export"): _view(),
    ("GET", "calibration"): _view(),
    # Where accounts share no lessons, thresholds are an operator's; else any maintainer's.
    ("POST", "calibration_measure"): Page(role="operator"),
    ("POST", "calibration_apply"): Page(role="operator", form={"what": "before:{calibration}", "reason": "So."}),
    ("GET", "audit"): _view(),
    ("GET", "audit_export"): _view(),
    ("GET", "demo"): _view(),
    ("POST", "demo_remove"): _maintainer(),
    ("GET", "people"): _view(),
    ("POST", "grant"): _maintainer(username="asked", role="viewer"),
    ("POST", "role"): _maintainer(role="judge", expected="viewer"),
}
#: Forms about many rows let anybody in and refuse each row by itself: a viewer's leave everything as it was.
ROW_BY_ROW: Final = ("bulk", "bulk_undo")

#: What is neither: the answer to somebody without a login, and to somebody with one. Without SONDER_METRICS_KEY there
#: is no `metrics`.
SITE: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("GET", "home"): ("in", "in"),  # leads to the dashboard, which asks for the login
    ("GET", "favicon.ico"): ("in", "in"),
    ("GET", "healthz"): ("in", "in"),
    ("GET", "readyz"): ("in", "in"),
    ("GET", "metrics"): ("404", "404"),
    ("GET", "schema"): ("in", "in"),
    ("GET", "docs"): ("in", "in"),
    ("GET", "docs-script"): ("in", "in"),
    ("GET", "login"): ("in", "in"),
    ("POST", "login"): ("in", "in"),
    ("GET", "password"): ("login", "in"),
    ("POST", "password"): ("login", "in"),
    ("POST", "logout"): ("login", "login"),
}
#: The admin's own pages: the answer to staff without a permission, and to an operator. Nobody else comes in.
ADMIN: Final[dict[str, tuple[str, str]]] = {
    "index": ("in", "in"),
    "password_change": ("in", "in"),
    "password_change_done": ("in", "in"),
    "autocomplete": ("403", "403"),  # it names no field here
    "jsi18n": ("in", "in"),
    "app_list": ("404", "in"),
    "view_on_site": ("404", "404"),
    "auth_user_password_change": ("403", "404"),
}
#: The pages of each model in the admin, as the last part of a route's name.
MODEL_PAGES: Final = ("changelist", "add", "history", "delete", "change")
#: What operators add and delete by hand. All other rows of the product come from services, and stay.
ADDED: Final = ("account", "apikey", "membership", "project", "webhookendpoint")
DELETED: Final = ("membership",)
#: Models of other packages, which an operator edits as their packages allow.
FOREIGN: Final = {
    "auth_group",
    "auth_user",
    *(f"django_celery_beat_{kind}schedule" for kind in ("clocked", "crontab", "interval", "solar")),
    "django_celery_beat_periodictask",
}
