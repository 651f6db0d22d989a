"""What one account writes, no other reads: each refusal stands beside the owner's own call, which works."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from memory.models import Account, Fact, Lesson, Outcome, Preference, Project
from memory.services.credit import sweep
from tests.conftest import Agent
from tests.http.calls import INTERACTIONS, LESSONS, MISSING, OUTCOMES, RETRIEVE, nothing_changes, refused, report, start

pytestmark = pytest.mark.django_db

TASK = "make the worker survive a lost database connection"
TEXT = "Wrap every database call of the worker in `retry_once()` so that a lost connection does not end it."


@pytest.fixture
def work(agent: Agent) -> str:
    """An interaction of the agent's, with everything that can be read of it."""
    own = start(agent.client, TASK, project="rockets", session="talk-1")["id"]
    agent.client.patch(f"{INTERACTIONS}{own}/", {"response": "done"}, format="json")
    report(agent.client, own, "accepted", detail="seen by Olive")
    return str(own)


class TestAnothersInteraction:
    def test_cannot_be_read(self, agent: Agent, rival: Agent, work: str) -> None:
        refused(rival.client.get(f"{INTERACTIONS}{work}/"), 404)
        assert agent.client.get(f"{INTERACTIONS}{work}/").json()["task"] == TASK

    def test_cannot_be_finished(self, agent: Agent, rival: Agent, work: str) -> None:
        with nothing_changes():
            refused(rival.client.patch(f"{INTERACTIONS}{work}/", {"response": "stolen"}, format="json"), 404)
        assert agent.client.patch(f"{INTERACTIONS}{work}/", {"response": "mine"}, format="json").status_code == 200

    def test_cannot_be_judged(self, agent: Agent, rival: Agent, work: str) -> None:
        with nothing_changes():
            refused(report(rival.client, work, "failed"), 404)
            refused(report(rival.client, work, "accepted"), 404)
        assert report(agent.client, work, "failed").status_code == 201

    def test_answers_as_one_that_does_not_exist(self, rival: Agent, work: str) -> None:
        for call in (
            lambda key: rival.client.get(f"{INTERACTIONS}{key}/"),
            lambda key: rival.client.patch(f"{INTERACTIONS}{key}/", {"response": "x"}, format="json"),
            lambda key: report(rival.client, key, "accepted"),
        ):
            assert call(work).content == call(MISSING).content


class TestAnothersLists:
    def test_never_show_it(self, agent: Agent, rival: Agent, work: str) -> None:
        own = start(rival.client, TASK, project="rockets", session="talk-1")["id"]
        for query in ({}, {"project": "rockets"}, {"session": "talk-1"}, {"created_before": "2100-01-01T00:00:00Z"}):
            assert [row["id"] for row in rival.client.get(INTERACTIONS, query).json()["results"]] == [own]
            assert [row["id"] for row in agent.client.get(INTERACTIONS, query).json()["results"]] == [work]

    def test_never_show_its_outcomes(self, agent: Agent, rival: Agent, work: str) -> None:
        for query in ({}, {"interaction": work}, {"signal": "accepted"}, {"credited": "false"}):
            assert rival.client.get(OUTCOMES, query).json()["results"] == []
            assert [row["interaction"] for row in agent.client.get(OUTCOMES, query).json()["results"]] == [work]

    def test_are_not_entered_by_its_cursor(self, agent: Agent, rival: Agent, work: str) -> None:
        start(agent.client)
        cursor = agent.client.get(INTERACTIONS, {"page_size": 1}).json()["next"]
        assert [row["id"] for row in agent.client.get(cursor).json()["results"]] == [work]
        assert rival.client.get(cursor).json()["results"] == []


class TestAnothersScope:
    def test_projects_and_sessions_of_one_name_are_two(self, agent: Agent, rival: Agent, work: str) -> None:
        start(rival.client, project="rockets", session="talk-1")
        assert Project.objects.filter(slug="rockets").count() == 2
        assert agent.client.get(INTERACTIONS, {"session": "talk-1"}).json()["results"][0]["id"] == work

    def test_preferences_and_facts_stay_with_their_account(self, agent: Agent, rival: Agent) -> None:
        project = Project.objects.create(account=agent.account, slug="rockets", name="Rockets")
        Fact.objects.create(account=agent.account, project=project, text="The fuel is hydrogen.")
        Preference.objects.create(
            account=agent.account, scope="project:rockets", key="tone", text="Say it.", confidence=1, evidence_count=1,
            enabled=True, revision=1,
        )  # fmt: skip
        own, theirs = (start(who.client, project="rockets") for who in (agent, rival))
        assert [len(own["facts"]), len(own["preferences"])] == [1, 1]
        assert [theirs["facts"], theirs["preferences"]] == [[], []]

    @pytest.mark.parametrize("value", ["rival", "*", "", None])
    def test_cannot_be_named_in_a_body(self, agent: Agent, rival: Agent, value: str | None) -> None:
        with nothing_changes():
            answer = agent.client.post(INTERACTIONS, {"task": TASK, "account": value}, format="json")
            assert "API key" in refused(answer, 400, "account")["errors"]["account"][0]
        assert start(agent.client)["id"]

    @pytest.mark.parametrize("header", ["X-Account", "X-Forwarded-User", "X-Tenant", "Remote-User"])
    def test_cannot_be_named_in_a_header(self, rival: Agent, work: str, header: str) -> None:
        response = rival.client.get(INTERACTIONS, headers={header: "acme"})
        assert response.json()["results"] == []

    def test_cannot_be_named_in_a_parameter(self, agent: Agent, rival: Agent, work: str) -> None:
        for name in ("account", "account_id", "account__slug", "interaction__account"):
            refused(rival.client.get(INTERACTIONS, {name: "acme"}), 400, name)


class TestLessonsOfTheirOwnAccount:
    """`SONDER_LESSON_SCOPE=account`: no lesson is shared."""

    @pytest.fixture(autouse=True)
    def scoped(self) -> Iterator[None]:
        with override_settings(SONDER_LESSON_SCOPE="account"):
            yield

    @pytest.fixture
    def own(self, account: Account, lesson: Callable[..., Any]) -> Lesson:
        kept: Lesson = lesson(TEXT, account_id=account.pk)
        return kept

    @pytest.mark.parametrize("part", ["", "evidence/", "history/", "neighbours/"])
    def test_are_not_there_for_another(self, agent: Agent, rival: Agent, own: Lesson, part: str) -> None:
        refused(rival.client.get(f"{LESSONS}{own.pk}/{part}"), 404)
        assert agent.client.get(f"{LESSONS}{own.pk}/{part}").status_code == 200

    def test_are_not_listed_for_another(self, agent: Agent, rival: Agent, own: Lesson) -> None:
        for query in ({}, {"q": "database"}, {"state": "active"}, {"reviewed": "false"}):
            assert rival.client.get(LESSONS, query).json()["results"] == []
            assert [row["id"] for row in agent.client.get(LESSONS, query).json()["results"]] == [str(own.pk)]

    def test_are_never_retrieved_for_another(self, agent: Agent, rival: Agent, own: Lesson) -> None:
        for k in (1, 50):
            assert start(rival.client, TASK, k=k)["lessons"] == []
            assert [found["id"] for found in start(agent.client, TASK, k=k)["lessons"]] == [str(own.pk)]

    def test_are_not_explained_to_another(self, agent: Agent, rival: Agent, own: Lesson) -> None:
        asked = {"task": TASK, "explain": True}
        answer = rival.client.post(RETRIEVE, asked, format="json").json()
        assert (answer["lessons"], answer["explain"]) == ([], [])
        answer = agent.client.post(RETRIEVE, asked, format="json").json()
        assert [row["id"] for row in answer["explain"]] == [str(own.pk)]

    def test_of_the_same_text_are_two_and_each_gets_its_own(
        self, agent: Agent, rival: Agent, own: Lesson, lesson: Callable[..., Any]
    ) -> None:
        theirs = lesson(TEXT, account_id=rival.account.pk)
        assert [found["id"] for found in start(agent.client, TASK)["lessons"]] == [str(own.pk)]
        assert [found["id"] for found in start(rival.client, TASK)["lessons"]] == [str(theirs.pk)]
        neighbours = agent.client.get(f"{LESSONS}{own.pk}/neighbours/").json()
        assert neighbours == []

    def test_that_are_global_are_nobodys(self, agent: Agent, lesson: Callable[..., Any]) -> None:
        shared = lesson("Close the file before you rename it with `os.replace()`.")
        refused(agent.client.get(f"{LESSONS}{shared.pk}/"), 404)
        assert start(agent.client, "close the file before renaming it")["lessons"] == []


class TestSharedLessons:
    """The default: a lesson is everybody's, its evidence is not."""

    @pytest.mark.parametrize("policy", ["reference", "trial"])
    def test_show_rows_of_others_as_a_count_without_task_or_id(
        self, agent: Agent, rival: Agent, lesson: Callable[..., Any], policy: str
    ) -> None:
        shared = lesson(TEXT)
        with override_settings(SONDER_TRUST_POLICY=policy):
            own = [start(agent.client, f"{TASK}, attempt {i}")["id"] for i in range(2)]
            theirs = [start(rival.client, f"{TASK}, secret {i}")["id"] for i in range(3)]
            for who, ids in ((agent, own), (rival, theirs)):
                for interaction in ids:
                    assert report(who.client, interaction, "failed", detail="a private detail").status_code == 201
            sweep()
            response = agent.client.get(f"{LESSONS}{shared.pk}/evidence/")
        shown = response.json()
        assert sorted(row["interaction"] for row in shown["rows"]) == sorted(own)
        assert shown["rows_elsewhere"] == 3
        assert shown["losses"] == 5
        hidden = [*theirs, str(rival.account.pk), "secret", "private detail"]
        assert not [word for word in hidden if word in response.content.decode()]

    def test_show_in_their_history_ones_own_rows_alone(
        self, agent: Agent, rival: Agent, lesson: Callable[..., Any]
    ) -> None:
        shared = lesson(TEXT)
        for i in range(6):
            report(agent.client, start(agent.client, f"{TASK}, attempt {i}")["id"], "failed")
        sweep()
        response = rival.client.get(f"{LESSONS}{shared.pk}/history/")
        assert [event["kind"] for event in response.json()["results"]] == ["quarantined"]
        ids = Outcome.objects.values_list("interaction_id", flat=True)
        assert not [pk for pk in ids if str(pk) in response.content.decode()]
        own = agent.client.get(f"{LESSONS}{shared.pk}/history/").json()["results"][0]["evidence"]
        assert len(own["rows"]) == 5

    def test_are_filtered_by_project_within_ones_own_account_alone(
        self, agent: Agent, rival: Agent, lesson: Callable[..., Any], work: str
    ) -> None:
        learned = lesson(TEXT)
        Lesson.objects.filter(pk=learned.pk).update(source_interaction=work)
        start(rival.client, project="rockets")
        assert rival.client.get(LESSONS, {"project": "rockets"}).json()["results"] == []
        found = agent.client.get(LESSONS, {"project": "rockets"}).json()["results"]
        assert [row["id"] for row in found] == [str(learned.pk)]


def test_a_gated_account_is_handed_approved_lessons_only(
    agent: Agent, rival: Agent, lesson: Callable[..., Any]
) -> None:
    shared = lesson(TEXT)
    Account.objects.filter(pk=agent.account.pk).update(review_policy="gated")
    assert start(agent.client, TASK)["lessons"] == []
    assert agent.client.post(RETRIEVE, {"task": TASK}, format="json").json()["lessons"] == []
    assert [found["id"] for found in start(rival.client, TASK)["lessons"]] == [str(shared.pk)]
    Lesson.objects.filter(pk=shared.pk).update(reviewed_at=timezone.now())
    assert [found["id"] for found in start(agent.client, TASK)["lessons"]] == [str(shared.pk)]
