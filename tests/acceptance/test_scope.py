"""What one account writes is not another's, whoever asks and whatever runs in the background."""

import json
from typing import Any

import pytest

from memory.models import Lesson, LessonEmbedding
from memory.services import applying, pruning
from memory.services.scoping import lesson_account
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, TIMEOUT, TIMEOUT_AGAIN, TIMEOUT_TASK
from tests.conftest import Agent
from tests.distillers.server import lesson as answer
from tests.http.calls import INTERACTIONS, LESSONS, OUTCOMES, RETRIEVE, refused, report, start
from tests.services.workshop import model

pytestmark = pytest.mark.django_db

SECRET_WORD = "zanzibar"  # in everything that the account writes, and in nothing else
WISH = f"I always prefer answers that end with the word {SECRET_WORD}."


def write_everything(agent: Agent) -> str:
    """One row of each kind that belongs to an account; returns the interaction."""
    interaction = acts.work(agent, f"{WISH} {TIMEOUT_TASK}", SECRET_WORD, project="rockets", session="talk-1")
    fact = {"project": "rockets", "key": "fuel", "text": f"The fuel of {SECRET_WORD} is hydrogen."}
    assert agent.client.post(acts.FACTS, fact, format="json").status_code == 201
    todo = {"title": f"refuel {SECRET_WORD}", "detail": "before Monday", "project": "rockets"}
    assert agent.client.post(acts.TASKS, todo, format="json").status_code == 201
    acts.background()
    return interaction


def everything_read(agent: Agent, lesson: Lesson) -> str:
    """All that the account can be told, in one string."""
    told: list[Any] = [start(agent.client, f"{TIMEOUT_TASK}, {SECRET_WORD}", project="rockets", session="talk-1")]
    told += [acts.looked_up(agent, f"{TIMEOUT_TASK}, {SECRET_WORD}", project="rockets")]
    told += [acts.pages(agent, url) for url in (INTERACTIONS, OUTCOMES, LESSONS, acts.PREFERENCES, acts.FACTS)]
    told += [acts.pages(agent, url) for url in (acts.DISTILLATIONS, acts.SESSIONS, acts.TASKS)]
    told += [agent.client.get(acts.HEALTH).json()]
    for part in ("", "evidence/", "history/", "neighbours/"):
        told.append(agent.client.get(f"{LESSONS}{lesson.pk}/{part}").json())
    return json.dumps(told)


def test_scope_cross_tenant_absent(agent: Agent, rival: Agent, lesson_scope: str) -> None:
    """What an account wrote is the best match for the other's question, and is not there. Both have one project name.

    A lesson that is everybody's is there for both; what is the account's own about it is not.
    """
    lesson = acts.imported(agent.account, TIMEOUT)
    interaction = write_everything(agent)
    own, theirs = everything_read(agent, lesson), everything_read(rival, lesson)
    for mark in (
        f"{SECRET_WORD} is hydrogen", WISH, interaction, '"response": "zanzibar"', f"refuel {SECRET_WORD}",
    ):  # fmt: skip
        assert mark in own
        assert mark not in theirs
    hidden = [interaction, str(agent.account.pk), agent.key.prefix]
    assert [word for word in hidden if word in theirs] == []
    assert (TIMEOUT in json.dumps(acts.listed(rival))) is (lesson_scope == "global")
    assert TIMEOUT in acts.recalled(agent, TIMEOUT_TASK)
    assert (TIMEOUT in acts.recalled(rival, TIMEOUT_TASK)) is (lesson_scope == "global")
    rows = agent.client.get(f"{LESSONS}{lesson.pk}/evidence/").json()
    assert rows["wins"] == 1
    if lesson_scope == "global":
        shown = rival.client.get(f"{LESSONS}{lesson.pk}/evidence/").json()
        assert (shown["wins"], shown["rows"]) == (1, [])


@pytest.mark.parametrize("named", ["acme", "*", "", None, "%", ["acme"], {"slug": "acme"}])
def test_scope_caller_cannot_widen(agent: Agent, rival: Agent, lesson_scope: str, named: Any) -> None:
    """Naming an account in a body, a parameter or a header is refused or changes nothing."""
    acts.imported(agent.account, TIMEOUT)
    interaction = write_everything(agent)

    def still_works() -> None:
        assert acts.recalled(agent, TIMEOUT_TASK, project="rockets") == [TIMEOUT]
        assert agent.client.get(f"{INTERACTIONS}{interaction}/").status_code == 200

    for name in ("account", "account_id", "scope", "tenant"):
        for url, body in ((INTERACTIONS, {"task": TIMEOUT_TASK}), (RETRIEVE, {"task": TIMEOUT_TASK})):
            refused(rival.client.post(url, {**body, name: named}, format="json"), 400, name)
        fact = {"project": "rockets", "text": "The fuel is petrol.", name: named}
        refused(rival.client.post(acts.FACTS, fact, format="json"), 400, name)
        still_works()
    for url in (INTERACTIONS, OUTCOMES, LESSONS, acts.FACTS, acts.DISTILLATIONS):
        refused(rival.client.get(url, {"account": named if isinstance(named, str) else "acme"}), 400, "account")
        still_works()
    for header in ("X-Account", "X-Tenant", "X-Forwarded-User"):
        value = named if isinstance(named, str) else "acme"
        assert rival.client.get(INTERACTIONS, headers={header: value}).json()["results"] == []
    refused(rival.client.get(f"{INTERACTIONS}{interaction}/"), 404)
    refused(report(rival.client, interaction, "failed"), 404)
    still_works()
    assert SECRET_WORD not in json.dumps(start(rival.client, TIMEOUT_TASK, project="rockets"))


def test_scope_background_respects_boundary(agent: Agent, rival: Agent, lesson_scope: str) -> None:
    """Distilling, embedding, pruning and caches work within one account; each has what was derived for it."""
    with model() as server:
        for who, word in ((agent, "acme"), (rival, "rival")):
            server.answer = answer(f"Set `{word}_mode` before the first call of `connect()`, or it hangs.")
            assert acts.distilled(who, acts.learn(who, CLOCK, task=f"connect to {word}")) == ("stored", "stored")
        asked = [request["messages"][1]["content"] for request in server.requests]
    assert [("acme" in content, "rival" in content) for content in asked] == [(True, False), (False, True)]
    assert [len(acts.pages(who, acts.DISTILLATIONS)) for who in (agent, rival)] == [1, 1]
    for who in (agent, rival):
        own = Lesson.objects.get(text__contains=f"{who.account.slug}_mode")
        assert own.account_id == lesson_account(who.account.pk)

    for who in (agent, rival):
        acts.import_texts(who.account, TIMEOUT, TIMEOUT_AGAIN)
    LessonEmbedding.objects.all().delete()
    acts.background()
    pairs = LessonEmbedding.objects.values_list("account", "lesson__account")
    assert len(pairs) == Lesson.objects.count()
    assert all(vector == lesson for vector, lesson in pairs)

    task = f"{TIMEOUT_TASK} or set the mode before the first connect"
    for who, other in ((agent, rival), (rival, agent), (agent, rival)):  # the caches know the task after the first
        found = acts.recalled(who, task)
        assert any(f"{who.account.slug}_mode" in text for text in found)
        assert any(f"{other.account.slug}_mode" in text for text in found) is (lesson_scope == "global")
    keyed = {"headers": {"Idempotency-Key": "1"}, "format": "json"}
    mine, theirs, again = (
        who.client.post(INTERACTIONS, {"task": task}, **keyed).json() for who in (agent, rival, agent)
    )
    assert mine["id"] != theirs["id"]
    assert again == mine

    plan = pruning.make(pruning.scope(lesson_account(agent.account.pk)))
    (done,) = applying.apply(lesson_account(agent.account.pk), plan.digest)
    assert len(done.pruned) == 1
    left = Lesson.objects.filter(text__in=[TIMEOUT, TIMEOUT_AGAIN]).values_list("account__slug", flat=True)
    assert sorted(left, key=str) == ([None] if lesson_scope == "global" else ["acme", "rival", "rival"])
