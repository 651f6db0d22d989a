"""A small world for the matrix of permissions: something of every kind in one account, and everybody who could ask."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from memory.models import Account, ApiKey, Lesson, Preference
from memory.services import pruning
from memory.services.adjudication import version_of
from memory.services.demo import story
from memory.services.preference import Refinement, refine
from tests.conftest import Agent, make_agent
from tests.http.calls import report, start
from tests.http.routes import ROUTES, named
from tests.models.rows import insert
from tests.services.people import member

SCOPES = ("loop", "read", "govern", "admin")
ROLES = ("viewer", "judge", "reviewer", "maintainer")


@dataclass(frozen=True, kw_only=True)
class World:
    """What there is to be asked for, all of it of one account but for `rival`."""

    account: Account
    rival: Account
    lesson: Lesson
    ids: dict[str, Any] = field(default_factory=dict)  # of rows, by what they are

    def browser(self, role: str) -> Client:
        """Somebody's browser: a role of this account, or one of the others below."""
        client = Client(raise_request_exception=False)
        if role == "anonymous":
            return client
        users = get_user_model().objects
        if role in ROLES:
            member(self.account, role, role)
        elif role == "rival":
            member(self.rival, "maintainer", "rival")
        elif role == "operator":
            users.create_superuser("operator")
        else:
            users.create_user(role, is_staff=role == "clerk")
        client.force_login(users.get(username=role))
        return client

    def filled(self, form: dict[str, Any] | None) -> dict[str, Any]:
        """A form, with the ids of this world where a text names them in braces."""
        given = (form or {}).items()
        return {name: value.format(**self.ids) if isinstance(value, str) else value for name, value in given}

    def page(self, name: str) -> str:
        """Address of a page of the review, about what is in this world."""
        route, ids = ROUTES[f"review:{name}"], self.ids
        items = {
            "contradiction_skip": "contradiction_item",
            "outcome_skip": "outcome_needed_item",
            "opinion": "second_opinion_item",
        }
        values = {
            "verdict": "reject", "lesson_id": ids["lesson"], "item_id": ids[items.get(name, "new_lesson_item")],
            "contradiction_id": ids["contradiction"], "interaction_id": ids["interaction"],
            "preference_id": ids["preference"], "number": 2 if name == "preference_revert" else 1,
            "digest": ids["digest"], "kind": "csv", "account_id": ids["account"], "user_id": ids["user"],
        }  # fmt: skip
        return named(route, values)

    def key(self, *scopes: str, at: Account | None = None, **columns: Any) -> Agent:
        """A key with these scopes, of this account unless another is named."""
        made = make_agent(at or self.account, "caller", list(scopes))
        ApiKey.objects.filter(pk=made.key.pk).update(**columns)
        return made


def build(account: Account, rival: Account, lesson: Callable[..., Lesson]) -> World:
    """The world: its rows are the smallest that the pages need to show something."""
    own = account.pk
    insert("import_run", name=story.RUN)
    Account.objects.filter(pk=own).update(slug=story.ACCOUNT)  # whose data the page of the demo takes back
    first = lesson("Wrap every call of `fetch()` in `retry_once()` because the peer drops them.", account_id=own)
    second = lesson("Never call `print()` in a worker; write to `log.info()` with the id of the task.", account_id=own)
    agent = make_agent(account, "caller", ["loop"])
    work = UUID(start(agent.client, "fetch the page", project="rockets", session="talk")["id"])
    report(agent.client, str(work), "accepted")
    preference = Preference.objects.create(
        account=account, scope="global", key="tabs", text="I prefer tabs.", confidence=0.5, evidence_count=1,
        enabled=True, revision=1,
    )  # fmt: skip
    note = [{"kind": "note", "text": "They said so."}]
    change = Refinement(
        expected_version=1, changes={"text": "I prefer spaces."}, evidence=note, expected_outcome="Fewer"
    )
    refinement = refine(own, preference.pk, change, "system")
    ids = {
        "pk": work,
        "interaction": work,
        "preference": preference.pk,
        "refinement": refinement.pk,
        "account": own,
        "lesson": first.pk,
        "second": second.pk,
        **_rows(own, first.pk, second.pk, work),
    }
    return World(account=account, rival=rival, lesson=first, ids=ids | {"version": version_of(first.pk)})


def _rows(account: UUID, first: UUID, second: UUID, work: UUID) -> dict[str, Any]:
    pair = insert("contradiction", first=first, second=second, account_id=account)["id"]
    project = insert("project", account_id=account)["id"]
    asker, _ = (insert("auth_user", username=name)["id"] for name in ("asker", "asked"))
    subjects = {"new_lesson": first, "contradiction": pair, "outcome_needed": work, "second_opinion": second}
    items = {
        f"{kind}_item": insert("review_item", kind=kind, subject=subject, account_id=account)["id"]
        for kind, subject in subjects.items()
    }
    tasks = [insert("task", account_id=account, project_id=project)["id"] for _ in range(3)]
    return items | {
        "contradiction": pair,
        "project": project,
        "user": asker,
        "fact": insert("fact", account_id=account, project_id=project)["id"],
        "session": insert("session", account_id=account, project_id=project)["id"],
        "task": tasks[0],
        "depends_on": tasks[1],
        "third": tasks[2],
        "dependency": insert("task_dependency", task_id=tasks[0], depends_on_id=tasks[1])["id"],
        "distillation": insert("lesson_distillation", interaction_id=work)["interaction_id"],
        "digest": pruning.current(account).digest,
        "adjudication": insert("adjudication", subject=second, account_id=account, reviewer_id=asker)["id"],
        "calibration": insert("calibration")["id"],
        "membership": insert("membership", account_id=account, user_id=asker, role="viewer")["id"],
        "now": timezone.now().isoformat(),
        "later": (timezone.now() + timedelta(days=7)).date().isoformat(),
    }
