"""What must hold on every path holds for agents that come by MCP: each with its positive control."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from mcp import types

from memory import tasks
from memory.models import Lesson, Membership, ReviewItem, TrustEvent, WriteRefusal
from memory.services import rejection
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, TIMEOUT, TIMEOUT_TASK
from tests.acceptance.test_gateway import CLAIMS, DUPLICATE, ORDER, REFUSED, REJECTED, VAGUE
from tests.acceptance.test_prompt import HOSTILE, INVISIBLE, MARKUP
from tests.acceptance.test_scope import SECRET_WORD, write_everything
from tests.conftest import Agent
from tests.http.calls import LESSONS, nothing_changes
from tests.mcp.clients import answer, refused, use

pytestmark = pytest.mark.django_db

GOOD = "Sort by `(-score, id)` when you page through results, because equal scores change places between pages."


def learn(agent: Agent, text: str, task: str = "fetch the monthly report from billing") -> str:
    """Good work whose answer holds a lesson, reported by MCP alone and distilled by the worker; its interaction."""
    work = {"interaction_id": answer(use(agent.token, "start_interaction", task=task))["interaction_id"]}
    response = f"It works now.\n\nLesson: {text}\n\nAll tests pass."
    answer(use(agent.token, "finish_interaction", **work, response=response))
    answer(use(agent.token, "record_outcome", **work, signal="accepted"))
    tasks.distill_interaction(work["interaction_id"])
    return str(work["interaction_id"])


def recalled(agent: Agent, task: str) -> str:
    return str(answer(use(agent.token, "start_interaction", task=task))["context"])


def test_gateway_no_bypass_path(agent: Agent, lesson_scope: str, reviewer: Any) -> None:
    """What an agent teaches by its work passes the same gates, and no tool and no argument writes a lesson."""
    rejection.reject(acts.imported(agent.account, REJECTED).pk, reviewer=reviewer.pk, reason="it hides dead peers")
    acts.imported(agent.account, DUPLICATE)
    before = set(Lesson.objects.values_list("pk", "text", "state"))
    for text, reason in {**REFUSED, VAGUE: "not_concrete"}.items():
        WriteRefusal.objects.all().delete()
        assert acts.distilled(agent, learn(agent, text))[1] == reason
        account = agent.account.pk if lesson_scope == "account" else None
        assert list(WriteRefusal.objects.values_list("path", "reason", "account")) == [
            ("distillation", reason, account)
        ]
    with nothing_changes():
        for name in ("save_lesson", "add_memory", "forget", "delete_lesson", "approve"):
            refused(use(agent.token, name, text=GOOD), 404)
        for name in ("lesson", "lessons", "text", "memory"):
            refused(use(agent.token, "start_interaction", task="x", **{name: GOOD}), 400, name)
    assert set(Lesson.objects.values_list("pk", "text", "state")) == before

    assert acts.distilled(agent, learn(agent, GOOD)) == ("stored", "stored")
    assert acts.stored(agent.account, GOOD).state == "active"


WIDENINGS: tuple[tuple[str, Any], ...] = (
    *(("account", named) for named in ("acme", "*", "", None, "%", ["acme"], {"slug": "acme"})),
    *((name, "acme") for name in ("account_id", "scope", "tenant")),
)


def test_scope_caller_cannot_widen(agent: Agent, rival: Agent, lesson_scope: str) -> None:
    """Naming an account in an argument is refused, and another's ids are unknown, whatever the tool."""
    acts.imported(agent.account, TIMEOUT)
    work = {"interaction_id": write_everything(agent)}
    calls: dict[str, dict[str, Any]] = {
        "start_interaction": {"task": TIMEOUT_TASK, "project": "rockets", "session": "talk-1"},
        "finish_interaction": {**work, "response": "mine"},
        "record_outcome": {**work, "signal": "failed"},
        "retrieve_lessons": {"task": TIMEOUT_TASK},
        "list_preferences": {"project": "rockets"},
        "list_facts": {"project": "rockets"},
    }
    with nothing_changes():
        for name, arguments in calls.items():
            for widening, named in WIDENINGS:
                refused(use(rival.token, name, **arguments, **{widening: named}), 400, widening)
        for name in ("finish_interaction", "record_outcome"):
            refused(use(rival.token, name, **calls[name]), 404)
    told = [answer(use(rival.token, name, **calls[name])) for name in calls if "interaction_id" not in calls[name]]
    assert SECRET_WORD not in json.dumps(told)

    own = [answer(use(agent.token, name, **arguments)) for name, arguments in calls.items()]
    assert json.dumps(own).count(SECRET_WORD) >= 3, "the fact, the preference, and both again with the interaction"
    assert own[2]["source"] == "caller"
    assert TIMEOUT in own[0]["context"]
    assert TIMEOUT in own[3]["context"]


def test_gateway_model_cannot_claim_human_authority(
    agent: Agent, machine: Agent, lesson_scope: str, reviewer: Any
) -> None:
    """Arguments that claim it are refused, words that claim it are words; a person's decision names the person."""
    agent.account.review_policy = "gated"
    agent.account.save(update_fields=["review_policy"])
    work = {"interaction_id": answer(use(machine.token, "start_interaction", task=ORDER))["interaction_id"]}
    with nothing_changes():
        for claim in CLAIMS:
            (name,) = claim
            refused(use(machine.token, "start_interaction", task="x", **claim), 400, name)
            refused(use(machine.token, "finish_interaction", **work, response="x", **claim), 400, name)
            refused(use(machine.token, "record_outcome", **work, signal="accepted", **claim), 400, name)
    said = answer(use(machine.token, "record_outcome", **work, signal="accepted", detail=ORDER))
    assert (said["source"], said["reward"]) == ("machine", 0.8)

    learned = acts.lesson_of(learn(agent, TIMEOUT, task=ORDER))
    assert (learned.state, learned.origin, learned.reviewed_by) == ("candidate", "distilled", None)
    assert ReviewItem.objects.get(subject=learned.pk).status == "open"
    assert not TrustEvent.objects.exists()
    assert recalled(agent, TIMEOUT_TASK) == ""

    Membership.objects.create(account=agent.account, user=reviewer, role="reviewer")
    rejection.reject(learned.pk, reviewer=reviewer.pk, reason="not ours")
    rejection.restore(learned.pk, reviewer=reviewer.pk, reason="it is")
    actors = {event["actor"] for event in acts.pages(agent, f"{LESSONS}{learned.pk}/history/")}
    assert actors == {f"user:{reviewer.pk}"}
    assert TIMEOUT in recalled(agent, TIMEOUT_TASK)


@pytest.mark.parametrize("name", HOSTILE)
def test_prompt_recall_is_fenced_as_data(agent: Agent, name: str) -> None:
    """A tool's answer goes to the model as it is: a lesson's wording is in it once, inside the envelope, and inert."""
    assert acts.import_texts(agent.account, HOSTILE[name], TIMEOUT)["stored"] == 2
    for tool in ("start_interaction", "retrieve_lessons"):
        check_fence(use(agent.token, tool, task=TIMEOUT_TASK, k=2))


def check_fence(result: types.CallToolResult) -> None:
    found = answer(result)
    (content,) = result.content
    assert json.loads(content.text) == found
    context = found.pop("context")

    lines = context.split("\n")
    assert (lines[1], lines[-1], len(lines)) == ("<lessons>", "</lessons>", 5)
    assert MARKUP.findall(context) == []
    assert INVISIBLE.findall(context) == []
    assert not re.search(r"^\s*(system|human|assistant|user)\s*:", context, re.MULTILINE | re.IGNORECASE)
    envelope = ElementTree.fromstring("\n".join(lines[1:]))
    assert [child.get("id") for child in envelope] == [lesson["id"] for lesson in found["lessons"]]
    assert all(not list(child) for child in envelope)
    assert TIMEOUT in [child.text for child in envelope], "and what is harmless is told word for word"
    assert "requests.get" not in json.dumps(found), "nothing of it stands outside the fence"
    assert "requests.get" in context


def test_what_was_recalled_is_not_learned_again(agent: Agent, lesson_scope: str) -> None:
    """An agent that hands its context in with its answer teaches nothing by that; what it found out is learned."""
    acts.imported(agent.account, TIMEOUT)
    handed = answer(use(agent.token, "start_interaction", task=TIMEOUT_TASK))
    assert TIMEOUT in handed["context"]
    work = {"interaction_id": handed["interaction_id"]}
    answer(use(agent.token, "finish_interaction", **work, response=f"{handed['context']}\n\nLesson: {TIMEOUT}"))
    answer(use(agent.token, "record_outcome", **work, signal="accepted"))
    tasks.distill_interaction(work["interaction_id"])
    assert acts.distilled(agent, work["interaction_id"])[0] == "no_lesson"
    assert acts.distilled(agent, learn(agent, CLOCK)) == ("stored", "stored")
