"""What operators do with rows: each act asks first, needs the right, says what it did, and is in the audit log."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from memory.admin import confirming, distillation
from memory.errors import EmbeddingUnavailable
from memory.models import Account, ApiKey, Lesson, LessonDistillation, LessonEmbedding, OperatorAct
from memory.services import space as spaces
from memory.services.keys import find_key
from tests.conftest import Agent
from tests.http.admin_pages import address, body
from tests.http.calls import nothing_changes, start
from tests.http.calls import report as judge
from tests.http.test_openapi import Page

pytestmark = pytest.mark.django_db

SECRET = r"sonder_[a-z0-9]{12}_[\w-]{43}"


def act(client: Client, action: str, row: Model, **choices: Any) -> Any:
    sent = {"action": action, "_selected_action": [row.pk], "confirmed": "yes", **choices}
    return client.post(address(type(row), "changelist"), sent, follow=True)


@pytest.fixture
def failed(agent: Agent) -> LessonDistillation:
    """A distillation that has failed for good, of work that is still judged good."""
    work = start(agent.client)["id"]
    agent.client.patch(f"/api/v1/interactions/{work}/", {"response": "sorted(names)"}, format="json")
    judge(agent.client, work, "accepted")
    LessonDistillation.objects.update(
        state="failed", result_reason="attempts_exhausted", attempts=5, completed_at="2026-01-01T00:00:00Z"
    )
    return LessonDistillation.objects.get()


@pytest.fixture
def rows(agent: Agent, failed: LessonDistillation, lesson: Callable[..., Lesson]) -> dict[str, Model]:
    stored = lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
    return {"rotate": agent.key, "revoke": agent.key, "retry": failed, "cancel": failed, "reembed": stored}


def vector() -> list[float]:
    """Of the only lesson, as PostgreSQL keeps it."""
    (found,) = LessonEmbedding.objects.values_list("embedding", flat=True)
    return found if isinstance(found, list) else found.to_list()


ACTS = ("rotate", "revoke", "retry", "cancel", "reembed")
every_act = pytest.mark.parametrize("action", ACTS)


@every_act
def test_asks_before_it_does_anything(pages: Client, rows: dict[str, Model], action: str) -> None:
    with nothing_changes():
        sent = {"action": action, "_selected_action": [rows[action].pk]}
        asked = pages.post(address(type(rows[action]), "changelist"), sent)
    assert asked.status_code == 200
    assert str(rows[action]) in body(asked)
    assert 'name="confirmed"' in body(asked)
    assert Page(asked.content.decode()).inline == []


@every_act
def test_is_done_by_nobody_without_the_permission(rows: dict[str, Model], action: str) -> None:
    row = rows[action]
    clerk = get_user_model().objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename=f"view_{row._meta.model_name}"))
    client = Client()
    client.force_login(clerk)
    with nothing_changes():
        assert act(client, action, row, grace="0").status_code == 200
    assert action not in re.findall(r'<option value="(\w+)">', body(client.get(address(type(row), "changelist"))))


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("rotate", "API key replaced"),
        ("revoke", "API key revoked"),
        ("retry", "Distillation tried again"),
        ("reembed", "Embedded anew"),
    ],
)
def test_stands_in_the_audit_log_with_who_did_it(
    pages: Client, rows: dict[str, Model], action: str, words: str
) -> None:
    act(pages, action, rows[action], grace="0")
    page = body(pages.get(reverse("review:audit"), {"actor": "olive"}))
    assert words in page
    assert "operation" in page
    assert OperatorAct.objects.count() == 1


class TestKeys:
    def test_are_replaced_and_the_new_secret_is_in_that_answer_alone(self, pages: Client, agent: Agent) -> None:
        answer = act(pages, "rotate", agent.key, grace="24", days="30")
        (secret,) = re.findall(SECRET, body(answer))
        assert find_key(secret) is not None
        assert find_key(agent.token) is not None, "it has a day left"
        assert secret not in str(answer.cookies) + str(pages.session.items())
        assert "no-store" in answer.headers["Cache-Control"]
        assert secret not in body(pages.get(address(ApiKey, "changelist")))

    def test_end_at_once_where_they_leaked(self, pages: Client, agent: Agent) -> None:
        act(pages, "rotate", agent.key, grace="0")
        assert find_key(agent.token) is None

    def test_that_have_ended_are_named_and_not_replaced(self, pages: Client, agent: Agent) -> None:
        act(pages, "revoke", agent.key)
        answer = act(pages, "rotate", agent.key, grace="0")
        assert re.findall(SECRET, body(answer)) == []
        assert f"The key {agent.key.prefix} does not work any more." in body(answer)
        assert ApiKey.objects.count() == 1

    @pytest.mark.parametrize("wrong", [{"grace": "-1"}, {"grace": "0", "days": "0"}, {}])
    def test_are_not_replaced_by_a_form_that_says_too_little(
        self, pages: Client, agent: Agent, wrong: dict[str, str]
    ) -> None:
        with nothing_changes():
            assert 'name="confirmed"' in body(act(pages, "rotate", agent.key, **wrong))


class TestDistillations:
    def test_that_failed_wait_again(self, pages: Client, failed: LessonDistillation) -> None:
        assert "Waiting again: 1 of 1." in body(act(pages, "retry", failed))
        failed.refresh_from_db()
        assert (failed.state, failed.attempts) == ("pending", 0)

    def test_that_wait_are_called_off(self, pages: Client, failed: LessonDistillation) -> None:
        act(pages, "retry", failed)
        assert "Called off: 1 of 1." in body(act(pages, "cancel", failed))
        failed.refresh_from_db()
        assert (failed.state, failed.result_reason) == ("cancelled", "cancelled_by_operator")
        acts = list(OperatorAct.objects.order_by("id").values_list("action", "subject", "account"))
        account = Account.objects.get().pk
        assert acts == [(f"distillation_{word}", failed.pk, account) for word in ("retried", "cancelled")]

    def test_that_have_ended_say_why_nothing_was_done(self, pages: Client, failed: LessonDistillation) -> None:
        with nothing_changes():
            told = body(act(pages, "cancel", failed))
        assert "This distillation is failed already." in told
        assert "Called off: 0 of 1." in told

    def test_are_as_many_as_one_act_takes_and_refusals_are_told_by_reason(
        self, pages: Client, agent: Agent, failed: LessonDistillation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(2):
            pk = start(agent.client)["id"]
            LessonDistillation.objects.create(pk=pk, state="pending", signal="accepted", attempts=0, last_error="")
        monkeypatch.setattr(confirming, "AT_ONCE", 2)
        monkeypatch.setattr(distillation, "AT_ONCE", 2)
        every = {"action": "retry", "_selected_action": [failed.pk], "select_across": "1"}
        asked = body(pages.post(address(LessonDistillation, "changelist"), every))
        assert "first 2 of 3" in asked
        assert asked.count("<li>pending") + asked.count("<li>failed") == 2
        told = body(act(pages, "retry", failed, select_across="1"))
        assert told.count("only a failed one can be tried again") == 1
        assert " and 1 more: " in told
        assert "Waiting again: 0 of 2." in told


class TestLessons:
    TEXT = "Sort names with `sorted(names, key=str.casefold)` so that case does not decide."

    def test_get_their_vectors_anew(self, pages: Client, lesson: Callable[..., Lesson]) -> None:
        stored = lesson(self.TEXT)
        before = vector()
        LessonEmbedding.objects.update(embedding=[0.5] * len(before))
        assert "Embedded anew: 1 of 1." in body(act(pages, "reembed", stored))
        assert vector() == before

    def test_get_one_where_there_was_none(self, pages: Client, lesson: Callable[..., Lesson]) -> None:
        stored = lesson(self.TEXT)
        LessonEmbedding.objects.all().delete()
        act(pages, "reembed", stored)
        assert LessonEmbedding.objects.get().lesson_id == stored.pk

    def test_keep_theirs_while_the_model_is_away(
        self, pages: Client, lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = lesson(self.TEXT)

        def away(*_: object) -> None:
            raise EmbeddingUnavailable("The model does not answer.")

        monkeypatch.setattr(spaces, "embed_each", away)
        with nothing_changes():
            assert "The model does not answer." in body(act(pages, "reembed", stored))

    def test_are_not_too_many_at_once(
        self, pages: Client, lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = lesson(self.TEXT)
        monkeypatch.setattr(spaces, "BATCH", 0)
        with nothing_changes():
            assert "`manage.py reembed` does all" in body(act(pages, "reembed", stored))
