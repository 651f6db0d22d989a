"""What was corrected stays corrected: the old value is gone from what agents are told, and does not creep back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.services import rejection
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CLOCK_TASK, TIMEOUT, TIMEOUT_TASK
from tests.conftest import Agent
from tests.http.calls import start

pytestmark = pytest.mark.django_db

WISH = "I always prefer short answers in plain English."
OTHER_WISH = "Always write the failing test before the fix."


def record(agent: Agent, key: str, text: str, **times: datetime) -> str:
    fact = {"project": "api", "key": key, "text": text, **{name: at.isoformat() for name, at in times.items()}}
    answer = agent.client.post(acts.FACTS, fact, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def correct(agent: Agent, fact: str, **changes: Any) -> str:
    answer = agent.client.post(f"{acts.FACTS}{fact}/correct/", changes, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def retract(agent: Agent, fact: str) -> None:
    assert agent.client.post(f"{acts.FACTS}{fact}/retract/", {}, format="json").status_code == 200


def told(agent: Agent, *, task: str = "look into the API") -> tuple[set[str], set[str]]:
    """The facts and the preferences that an agent is handed."""
    answer = start(agent.client, task, project="api")
    return {fact["text"] for fact in answer["facts"]}, {wish["text"] for wish in answer["preferences"]}


def refine(governor: Agent, key: str, **changes: Any) -> str:
    wish = next(row for row in acts.pages(governor, acts.PREFERENCES) if row["key"] == key)
    request = {
        "expected_version": wish["revision"], "expected_outcome": "answers that people like",
        "evidence": [{"kind": "note", "text": "they said so"}], **changes,
    }  # fmt: skip
    answer = governor.client.post(f"{acts.PREFERENCES}{wish['id']}/refinements/", request, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def roll_back(governor: Agent, refinement: str, version: int) -> None:
    url = f"/api/v1/refinements/{refinement}/rollback/"
    answer = governor.client.post(url, {"expected_version": version}, format="json")
    assert answer.status_code == 201, answer.content


@pytest.mark.django_db(transaction=True)
def test_correction_survives_reindex(agent: Agent, governor: Agent, reviewer: Any) -> None:
    """Facts, preferences and a lesson's wording, corrected in every way, before and after all is derived anew."""
    now = datetime.now(UTC)
    port = record(agent, "port", "The API listens on port 8000.")
    cache = record(agent, "cache", "The cache is enabled.")
    retract(agent, record(agent, "owner", "Ana owns the API."))
    shift = record(agent, "shift", "Deploys start at 14:00.", valid_from=now - timedelta(days=9))
    record(
        agent, "freeze", "Nothing is deployed.", valid_from=now - timedelta(days=9), valid_until=now - timedelta(days=2)
    )
    record(agent, "launch", "The shop is open.", valid_from=now + timedelta(days=2))
    correct(agent, port, text="The API listens on port 8080.")  # replacement
    correct(agent, cache, text="The cache is not enabled.")  # the opposite
    correct(agent, shift, valid_until=(now - timedelta(days=1)).isoformat())  # superseded in part
    record(agent, "shift", "Deploys start at 15:00.", valid_from=now - timedelta(days=1))

    start(agent.client, WISH)
    start(agent.client, OTHER_WISH)
    short, test_first = (row["key"] for row in reversed(acts.pages(agent, acts.PREFERENCES)))
    refine(governor, short, text="Prefer long answers in plain English.")
    undone = refine(governor, test_first, text="Never write a test.")
    roll_back(governor, undone, version=2)

    old = acts.imported(agent.account, TIMEOUT)
    new = TIMEOUT.replace("timeout=30", "timeout=5")
    assert rejection.supersede(old.pk, new, reviewer=reviewer.pk).lesson is not None

    facts = {"The API listens on port 8080.", "The cache is not enabled.", "Deploys start at 15:00."}
    wishes = {"Prefer long answers in plain English.", OTHER_WISH}
    for _ in range(2):
        assert told(agent) == (facts, wishes)
        listed = {row["text"] for row in acts.pages(agent, acts.FACTS, as_of=now.isoformat())}
        assert listed == facts
        assert acts.recalled(agent, TIMEOUT_TASK) == [new]
        two_days_ago = {"as_of": (now - timedelta(days=3)).isoformat()}
        assert "Deploys start at 14:00." in {row["text"] for row in acts.pages(agent, acts.FACTS, **two_days_ago)}
        acts.command("reembed", "--drop-old")
        acts.command("rebuild_standing")
        acts.background()
        acts.forget_caches()


def test_correction_retraction_without_replacement(
    agent: Agent, governor: Agent, lesson_scope: str, reviewer: Any
) -> None:
    """What has no successor stays away when its source says it again; what else the source says is recalled."""
    said = f"{WISH} {OTHER_WISH}"
    start(agent.client, said)
    short, test_first = (row["key"] for row in reversed(acts.pages(agent, acts.PREFERENCES)))
    retract(agent, record(agent, "owner", "Ana owns the API."))
    record(agent, "port", "The API listens on port 8080.")
    acts.learn(agent, TIMEOUT)
    rejection.reject(acts.stored(agent.account, TIMEOUT).pk, reviewer=reviewer.pk, reason="it does harm")
    refine(governor, short, enabled=False)

    for _ in range(3):
        start(agent.client, said)
        assert acts.distilled(agent, acts.learn(agent, TIMEOUT)) == ("no_lesson", "rejected_value")
        acts.background()
        assert told(agent) == ({"The API listens on port 8080."}, {OTHER_WISH})
        assert acts.recalled(agent, TIMEOUT_TASK) == []
    rows = {row["key"]: row for row in acts.pages(agent, acts.PREFERENCES)}
    assert (rows[short]["enabled"], rows[short]["evidence_count"]) == (False, 4)
    assert (rows[test_first]["enabled"], rows[test_first]["evidence_count"]) == (True, 4)
    assert acts.distilled(agent, acts.learn(agent, CLOCK)) == ("stored", "stored")
    assert acts.recalled(agent, CLOCK_TASK) == [CLOCK]
