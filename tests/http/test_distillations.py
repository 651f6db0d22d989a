"""Distillations through the API: what became of good work, and an operator's two verbs."""

from typing import Any

import pytest
from django.test import override_settings

from memory.models import Account, Lesson
from memory.services import distilling
from tests.conftest import Agent, make_agent
from tests.services.workshop import OPEN, TERMINAL, distill, good_work, outcome_of, put_into, row

pytestmark = pytest.mark.django_db

LIST = "/api/v1/distillations/"
ADVICE = "Pass `timeout=30` to every `requests.get` call, because a dead peer blocks the worker forever otherwise."


@pytest.fixture
def governor(account: Account) -> Agent:
    """An operator's key."""
    return make_agent(account, "unknown", ["govern", "read"])


@pytest.fixture
def rival_governor(rival_account: Account) -> Agent:
    return make_agent(rival_account, "unknown", ["govern", "read"])


def listed(agent: Agent, query: str = "") -> list[dict[str, Any]]:
    answer = agent.client.get(LIST + query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def do(agent: Agent, interaction: object, verb: str, body: object = None, **headers: str) -> Any:
    return agent.client.post(f"{LIST}{interaction}/{verb}/", body, format="json", headers=headers)


class TestLoop:
    def test_good_work_over_http_becomes_a_lesson_for_the_next_task(self, agent: Agent, rival: Agent) -> None:
        task = {"task": "Fetch the report, although the peer may be dead."}
        started = agent.client.post("/api/v1/interactions/", task, format="json").json()
        address = f"/api/v1/interactions/{started['id']}/"
        assert started["lessons"] == []
        agent.client.patch(address, {"response": f"It hung. {ADVICE} It works now."}, format="json")
        agent.client.post(f"{address}outcomes/", {"signal": "tests_passed"}, format="json")
        assert [(d["id"], d["state"]) for d in listed(agent)] == [(started["id"], "pending")]
        assert distilling.sweep() == 1
        (found,) = listed(agent)
        stored = Lesson.objects.get()
        assert (found["state"], found["result_reason"], found["lesson"]) == ("stored", "stored", str(stored.pk))
        assert (found["signal"], found["attempts"], found["last_error"]) == ("tests_passed", 1, "")
        assert agent.client.get(f"/api/v1/lessons/{stored.pk}/").json()["text"] == ADVICE
        again = rival.client.post("/api/v1/interactions/", task, format="json").json()
        assert [lesson["text"] for lesson in again["lessons"]] == [ADVICE]
        assert listed(rival) == []

    def test_an_answer_that_comes_after_the_outcome_is_distilled_too(self, agent: Agent) -> None:
        started = agent.client.post("/api/v1/interactions/", {"task": "Fetch it."}, format="json").json()
        address = f"/api/v1/interactions/{started['id']}/"
        agent.client.post(f"{address}outcomes/", {"signal": "accepted"}, format="json")
        assert listed(agent) == []
        agent.client.patch(address, {"response": ADVICE}, format="json")
        assert [d["state"] for d in listed(agent)] == ["pending"]

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_with_lessons_by_account_another_account_is_handed_none_of_it(
        self, account: Account, agent: Agent, rival: Agent
    ) -> None:
        distill(account, response=ADVICE)
        for who, texts in [(rival, []), (agent, [ADVICE])]:
            answer = who.client.post("/api/v1/retrieve/", {"task": ADVICE}, format="json").json()
            assert [lesson["text"] for lesson in answer["lessons"]] == texts


class TestList:
    def test_it_can_be_narrowed_by_state_and_by_reason(self, account: Account, reader: Agent) -> None:
        stored, dull, waiting = (
            distill(account, response=ADVICE),
            distill(account, response="Done."),
            good_work(account),
        )
        assert [d["id"] for d in listed(reader)] == [str(i) for i in (waiting, dull, stored)]
        assert [d["id"] for d in listed(reader, "?state=pending")] == [str(waiting)]
        assert [d["id"] for d in listed(reader, "?result_reason=no_candidate")] == [str(dull)]
        assert listed(reader, "?state=stored&result_reason=private") == []

    @pytest.mark.parametrize("query", ["?state=done", "?result_reason=bored", "?state=", "?stat=stored"])
    def test_a_word_that_is_none_is_refused_and_named(self, reader: Agent, query: str) -> None:
        answer = reader.client.get(LIST + query)
        assert answer.status_code == 400
        assert query[1:].split("=")[0] in answer.json()["errors"]

    def test_pages_follow_each_other(self, account: Account, reader: Agent) -> None:
        ids = [str(good_work(account)) for _ in range(5)]
        page = reader.client.get(LIST + "?page_size=2").json()
        seen = [d["id"] for d in page["results"]]
        while page["next"]:
            page = reader.client.get(page["next"]).json()
            seen += [d["id"] for d in page["results"]]
        assert seen == ids[::-1]

    def test_the_number_of_queries_does_not_grow_with_the_list(
        self, account: Account, reader: Agent, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(8):
            good_work(account)
        listed(reader)  # notes when the key was last used
        with django_assert_max_num_queries(2):
            assert len(listed(reader)) == 8

    def test_neither_the_token_nor_its_holder_is_shown(self, account: Account, reader: Agent) -> None:
        interaction = good_work(account)
        put_into(interaction, "claimed")
        (found,) = listed(reader)
        assert set(found) == {
            "id", "state", "signal", "attempts", "last_error", "result_reason", "lesson", "created_at", "completed_at",
        }  # fmt: skip
        assert str(row(interaction).claim_token) not in str(found)


class TestRetry:
    def test_a_failed_one_waits_again_and_is_distilled(self, account: Account, governor: Agent) -> None:
        interaction = good_work(account, response=ADVICE)
        put_into(interaction, "failed", attempts=5)
        answer = do(governor, interaction, "retry")
        assert answer.status_code == 200
        assert (answer.json()["state"], answer.json()["attempts"]) == ("pending", 0)
        distilling.sweep()
        assert row(interaction).state == "stored"

    @pytest.mark.parametrize("state", [s for s in OPEN + TERMINAL if s != "failed"])
    def test_another_one_is_a_conflict(self, account: Account, governor: Agent, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        answer = do(governor, interaction, "retry")
        assert answer.status_code == 409
        assert state in answer.json()["detail"]
        assert row(interaction).state == state


class TestCancel:
    @pytest.mark.parametrize("state", OPEN)
    def test_an_open_one_is_cancelled(self, account: Account, governor: Agent, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        answer = do(governor, interaction, "cancel")
        assert answer.status_code == 200
        assert (answer.json()["state"], answer.json()["result_reason"]) == ("cancelled", "cancelled_by_operator")
        assert distilling.sweep() == 0

    @pytest.mark.parametrize("state", TERMINAL)
    def test_a_closed_one_is_a_conflict(self, account: Account, governor: Agent, state: str) -> None:
        interaction = good_work(account)
        put_into(interaction, state)
        assert do(governor, interaction, "cancel").status_code == 409

    def test_the_same_request_twice_is_one(self, account: Account, governor: Agent) -> None:
        interaction = good_work(account)
        key = {"Idempotency-Key": "k"}
        first, second = (do(governor, interaction, "cancel", **key) for _ in range(2))
        assert first.status_code == second.status_code == 200
        assert first.json() == second.json()
        assert second.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("verb", ["retry", "cancel"])
class TestWhoMayNot:
    def prepared(self, account: Account, verb: str) -> Any:
        interaction = good_work(account)
        put_into(interaction, "failed" if verb == "retry" else "pending")
        return interaction

    def test_a_key_without_the_scope(
        self, account: Account, agent: Agent, reader: Agent, governor: Agent, verb: str
    ) -> None:
        interaction = self.prepared(account, verb)
        before = outcome_of(interaction)
        for who in (agent, reader):
            assert do(who, interaction, verb).status_code == 403
        assert outcome_of(interaction) == before
        assert do(governor, interaction, verb).status_code == 200

    def test_another_account(self, account: Account, rival_governor: Agent, governor: Agent, verb: str) -> None:
        interaction = self.prepared(account, verb)
        before = outcome_of(interaction)
        assert do(rival_governor, interaction, verb).status_code == 404
        assert listed(rival_governor) == []
        assert outcome_of(interaction) == before
        assert do(governor, interaction, verb).status_code == 200

    def test_nobody_without_a_key(self, account: Account, agent: Agent, verb: str) -> None:
        interaction = self.prepared(account, verb)
        answer = do(agent, interaction, verb, Authorization="Bearer sonder_nobody")
        assert answer.status_code == 401

    def test_a_body_that_says_more_is_refused(self, account: Account, governor: Agent, verb: str) -> None:
        interaction = self.prepared(account, verb)
        before = outcome_of(interaction)
        answer = do(governor, interaction, verb, {"state": "stored", "lesson": str(interaction)})
        assert answer.status_code == 400
        assert set(answer.json()["errors"]) == {"state", "lesson"}
        assert outcome_of(interaction) == before

    def test_what_was_never_queued_does_not_exist(self, governor: Agent, account: Account, verb: str) -> None:
        assert do(governor, account.pk, verb).status_code == 404
        assert do(governor, "no-id", verb).status_code == 404
