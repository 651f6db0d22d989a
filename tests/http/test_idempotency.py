"""The same key and request is one request, whatever happens on the way; another request with it is refused."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from memory.models import Fact, IdempotencyRecord, Interaction, LessonUsage, Outcome, Preference, Project
from memory.services.idempotency import forget_expired
from tests.conftest import Agent, make_agent
from tests.http.calls import (
    FINISH,
    INTERACTIONS,
    OPERATIONS,
    REPORT,
    START,
    Operation,
    nothing_changes,
    raw,
    refused,
    start,
)

pytestmark = pytest.mark.django_db

WRITES = {name: operation for name, operation in OPERATIONS.items() if name != "look_up"}
OTHER = {"start": {"task": "sort the towns"}, "finish": {"response": "x"}, "report": {"signal": "rejected"}}
WRONG: dict[str, dict[str, object]] = {
    "start": {"task": ""},
    "finish": {"tokens_in": -1},
    "report": {"signal": "great"},
}
KEY = "run-17/attempt 1 of 3"
every_write = pytest.mark.parametrize("operation", WRITES.values(), ids=WRITES)


@pytest.fixture
def own(agent: Agent) -> str:
    """An interaction of the agent's."""
    return str(start(agent.client)["id"])


def call(client: APIClient, operation: Operation, own: str, key: str, body: object = None) -> Any:
    return raw(
        client,
        operation.method,
        operation.url(own),
        json.dumps(operation.body if body is None else body),
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )


def age_records(hours: float) -> None:
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=hours))


@every_write
def test_the_same_request_again_gets_the_same_answer_and_writes_nothing(
    agent: Agent, own: str, operation: Operation
) -> None:
    first = call(agent.client, operation, own, KEY)
    assert first.status_code == operation.success
    assert "Idempotency-Replayed" not in first.headers
    with nothing_changes():
        for _ in range(2):
            again = call(agent.client, operation, own, KEY)
            assert (again.status_code, again.json()) == (first.status_code, first.json())
            assert again.headers["Idempotency-Replayed"] == "true"


def test_the_replay_holds_lessons_preferences_and_facts_as_the_first_answer_did(
    agent: Agent, lesson: Callable[..., Any]
) -> None:
    lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")
    project = Project.objects.create(account=agent.account, slug="rockets", name="Rockets")
    Fact.objects.create(
        account=agent.account, project=project, text="Fuel is 漢 \U0001f680.", valid_from=timezone.now()
    )
    Preference.objects.create(
        account=agent.account, scope="global", key="tone", text="Say it.", confidence=1 / 3, evidence_count=1,
        enabled=True, revision=1,
    )  # fmt: skip
    body = {"task": "sort the names", "project": "rockets"}
    first = call(agent.client, START, "", KEY, body).json()
    assert [len(first[name]) for name in ("lessons", "preferences", "facts")] == [1, 1, 1]
    assert call(agent.client, START, "", KEY, body).json() == first
    assert LessonUsage.objects.count() == 1


@every_write
def test_another_body_with_the_key_is_a_conflict(agent: Agent, own: str, operation: Operation) -> None:
    call(agent.client, operation, own, KEY)
    with nothing_changes():
        refused(call(agent.client, operation, own, KEY, OTHER[operation.name]), 409, "Idempotency-Key")
    assert call(agent.client, operation, own, KEY).headers["Idempotency-Replayed"] == "true"


def test_another_operation_or_address_with_the_key_is_a_conflict(agent: Agent, own: str) -> None:
    other = start(agent.client)["id"]
    call(agent.client, REPORT, own, KEY)
    with nothing_changes():
        refused(call(agent.client, FINISH, own, KEY), 409, "Idempotency-Key")
        refused(call(agent.client, REPORT, other, KEY), 409, "Idempotency-Key")
        refused(call(agent.client, START, "", KEY), 409, "Idempotency-Key")


def test_another_order_of_the_fields_is_the_same_body(agent: Agent) -> None:
    first = call(agent.client, START, "", KEY, {"task": "x", "k": 3})
    again = call(agent.client, START, "", KEY, {"k": 3, "task": "x"})
    assert again.json() == first.json()
    assert Interaction.objects.count() == 1


def test_another_judge_with_the_key_is_another_request(agent: Agent, machine: Agent, own: str) -> None:
    """The machine must not be told that its report was recorded because the caller's was."""
    call(agent.client, REPORT, own, KEY)
    with nothing_changes():
        refused(call(machine.client, REPORT, own, KEY), 409, "Idempotency-Key")
    assert call(machine.client, REPORT, own, KEY + "!").status_code == 201
    assert sorted(Outcome.objects.values_list("source", flat=True)) == ["caller", "machine"]


def test_a_new_api_key_of_the_same_judge_gets_the_replay(agent: Agent, own: str) -> None:
    renewed = make_agent(agent.account, "caller", ["loop"])
    first = call(agent.client, REPORT, own, KEY)
    assert call(renewed.client, REPORT, own, KEY).json() == first.json()
    assert Outcome.objects.count() == 1


def test_keys_of_two_accounts_do_not_meet(agent: Agent, rival: Agent) -> None:
    first = call(agent.client, START, "", KEY)
    second = call(rival.client, START, "", KEY, {"task": "sort the towns"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert call(agent.client, START, "", KEY).json() == first.json()


@every_write
def test_a_refused_request_leaves_the_key_unused(agent: Agent, own: str, operation: Operation) -> None:
    with nothing_changes():
        refused(call(agent.client, operation, own, KEY, WRONG[operation.name]), 400, *WRONG[operation.name])
    assert call(agent.client, operation, own, KEY).status_code == operation.success


def test_a_refusal_of_the_service_leaves_the_key_unused(agent: Agent, own: str) -> None:
    with nothing_changes():
        refused(call(agent.client, REPORT, own, KEY, {"signal": "retracted"}), 400, "signal")
    assert call(agent.client, REPORT, own, KEY).status_code == 201


@every_write
@pytest.mark.parametrize(
    "key", ["", "x" * 201, "schlüssel", "a\tb", "a\x7f", "\x00"], ids=["empty", "long", "umlaut", "tab", "del", "nul"]
)
def test_a_key_that_is_empty_too_long_or_not_printable_ascii_is_named(
    agent: Agent, own: str, operation: Operation, key: str
) -> None:
    with nothing_changes():
        refused(call(agent.client, operation, own, key), 400, "Idempotency-Key")


def test_a_key_of_200_characters_is_a_key(agent: Agent) -> None:
    key = "~" * 200
    assert call(agent.client, START, "", key).status_code == 201
    assert call(agent.client, START, "", key).headers["Idempotency-Replayed"] == "true"


class TestAfterADay:
    def test_the_answer_is_not_replayed_and_the_request_runs_again(self, agent: Agent, own: str) -> None:
        call(agent.client, REPORT, own, KEY, {"signal": "accepted"})
        age_records(23.9)
        assert call(agent.client, REPORT, own, KEY).headers["Idempotency-Replayed"] == "true"
        age_records(24.1)
        again = call(agent.client, REPORT, own, KEY, {"signal": "rejected"})
        assert (again.status_code, again.json()["signal"]) == (201, "rejected")
        assert "Idempotency-Replayed" not in again.headers

    def test_an_interaction_is_still_made_only_once(self, agent: Agent) -> None:
        made = call(agent.client, START, "", KEY).json()["id"]
        age_records(24.1)
        for _ in range(2):
            document = refused(call(agent.client, START, "", KEY), 409, "Idempotency-Key")
            assert made in document["detail"]
            forget_expired()
        assert Interaction.objects.count() == 1

    def test_answers_are_forgotten_and_younger_ones_kept(self, agent: Agent) -> None:
        call(agent.client, START, "", KEY)
        age_records(24.1)
        call(agent.client, START, "", KEY + "!")
        assert forget_expired() == 1
        assert IdempotencyRecord.objects.get().key == KEY + "!"


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    N = 6

    def race(self, agent: Agent, bodies: list[dict[str, str]]) -> list[Any]:
        """One request a thread, all at the same moment, with one key."""
        gate = Barrier(len(bodies))

        def run(body: dict[str, str]) -> Any:
            client = APIClient(headers={"Authorization": f"Bearer {agent.token}"}, raise_request_exception=False)
            try:
                gate.wait(timeout=20)
                return call(client, START, "", KEY, body)
            finally:
                connection.close()

        with ThreadPoolExecutor(len(bodies)) as threads:
            return list(threads.map(run, bodies))

    def test_requests_with_one_key_make_one_interaction_and_get_one_answer(self, agent: Agent) -> None:
        answers = self.race(agent, [{"task": "sort the names"}] * self.N)
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == self.N - 1
        assert Interaction.objects.count() == 1

    def test_different_requests_with_one_key_make_one_interaction_and_conflicts(self, agent: Agent) -> None:
        answers = self.race(agent, [{"task": f"sort list {i}"} for i in range(self.N)])
        assert sorted(answer.status_code for answer in answers) == [201] + [409] * (self.N - 1)
        assert Interaction.objects.count() == 1


def test_looking_up_takes_no_key_since_it_writes_nothing(agent: Agent) -> None:
    with nothing_changes():
        answer = call(agent.client, OPERATIONS["look_up"], "", KEY)
    assert answer.status_code == 200
    assert "Idempotency-Replayed" not in answer.headers
    assert not IdempotencyRecord.objects.exists()


def test_without_a_key_the_same_request_is_two(agent: Agent) -> None:
    for _ in range(2):
        agent.client.post(INTERACTIONS, START.body, format="json")
    assert Interaction.objects.count() == 2
