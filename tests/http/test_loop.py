"""The loop over HTTP: start, finish, report; who judged comes from the key; what it costs in queries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.models import Account, Fact, Interaction, LessonUsage, Outcome, Preference, Project
from memory.models.vocabulary import OutcomeSource
from memory.rules.signals import REWARDS, SIGNALS
from tests.conftest import Agent, make_agent
from tests.http.calls import INTERACTIONS, MISSING, OUTCOMES, nothing_changes, refused, report, start

pytestmark = pytest.mark.django_db

NAMES = "Sort names with `sorted(names, key=str.casefold)` so that case does not decide."
# Statements a request takes, with the savepoints that stand for a transaction's begin and end in a test.
START_QUERIES = 18  # an answer of five lessons, in a project and a session that exist
START_ALONE_QUERIES = 6  # without retrieval
FINISH_QUERIES = 10
REPORT_QUERIES = 10
REPEATED_REPORT_QUERIES = 7


def many_lessons(lesson: Callable[..., Any], n: int) -> None:
    """Lessons that all fit the same task."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    for i in range(n):
        a, b = words[i % 8], words[i // 8]
        lesson(f"Sort the {a} {b} names of list {i} with `sort_{a}_{b}_{i}()` and keep their case.")


class TestStarting:
    def test_hands_out_the_lesson_that_fits_and_a_context_that_holds_it(
        self, agent: Agent, lesson: Callable[..., Any]
    ) -> None:
        kept = lesson(NAMES)
        lesson("Close the socket with `socket.close()` before the process forks.")
        answer = start(agent.client, "sort the names, whatever their case")
        assert set(answer) == {"id", "lessons", "mode", "context", "preferences", "facts"}
        (found,) = answer["lessons"]
        assert (found["id"], found["text"], found["standing"]) == (str(kept.pk), NAMES, "active")
        assert found["similarity"] > 0
        assert found["score"] > 0
        assert found["lexical_rank"] == 1
        assert answer["mode"] == "hybrid"
        assert str(kept.pk) in answer["context"]
        (usage,) = LessonUsage.objects.filter(interaction=answer["id"])
        assert (usage.lesson_id, usage.exposure, usage.rank) == (kept.pk, "served", 1)

    def test_with_nothing_that_fits_gives_an_empty_list(self, agent: Agent, lesson: Callable[..., Any]) -> None:
        lesson(NAMES)
        answer = start(agent.client, "bake a cake without eggs")
        assert (answer["lessons"], answer["context"], answer["mode"]) == ([], "", "hybrid")

    def test_makes_project_and_session_on_first_use_and_finds_them_again(self, agent: Agent) -> None:
        first = start(agent.client, project="rockets", session="talk-1", tier="deep", model="m-1")
        second = start(agent.client, project="rockets", session="talk-1")
        third = start(agent.client, session="talk-1")
        assert Project.objects.filter(account=agent.account).count() == 1
        for answer in (first, second, third):
            shown = agent.client.get(f"{INTERACTIONS}{answer['id']}/").json()
            assert (shown["project"], shown["session"]) == ("rockets", "talk-1")
        explicit = Interaction.objects.order_by("pk").values_list("project_explicit", flat=True)
        assert list(explicit) == [True, True, False]

    def test_without_retrieval_records_the_task_alone(self, agent: Agent, lesson: Callable[..., Any]) -> None:
        lesson(NAMES)
        answer = start(agent.client, "sort the names", retrieve=False)
        assert (answer["lessons"], answer["context"], answer["mode"]) == ([], "", "none")
        assert Interaction.objects.get().space_id is None
        assert not LessonUsage.objects.exists()

    @pytest.mark.parametrize("k", [1, 2, 3, 5])
    def test_gives_at_most_k_lessons_and_k_where_enough_fit(
        self, agent: Agent, lesson: Callable[..., Any], k: int
    ) -> None:
        many_lessons(lesson, 8)
        answer = start(agent.client, "sort the names and keep their case", k=k)
        assert len(answer["lessons"]) == k
        assert LessonUsage.objects.filter(exposure="served").count() == k

    def test_gives_the_preferences_and_facts_that_apply(self, agent: Agent, rival_account: Account) -> None:
        project = Project.objects.create(account=agent.account, slug="rockets", name="Rockets")
        other = Project.objects.create(account=agent.account, slug="boats", name="Boats")
        common = {"confidence": 1.0, "evidence_count": 1, "revision": 1}
        for account, scope, key, enabled in [
            (agent.account, "global", "tone", True),
            (agent.account, "project:rockets", "tests", True),
            (agent.account, "project:boats", "boats", True),
            (agent.account, "global", "off", False),
            (rival_account, "global", "theirs", True),
        ]:
            Preference.objects.create(account=account, scope=scope, key=key, text=f"{key}!", enabled=enabled, **common)
        now = timezone.now()
        hour = timedelta(hours=1)
        for key, where, valid_from, valid_until, retracted in [
            ("fuel", project, None, None, None),
            ("pilot", project, now - hour, now + hour, None),
            ("past", project, None, now - hour, None),
            ("future", project, now + hour, None, None),
            ("retracted", project, None, None, now),
            ("elsewhere", other, None, None, None),
        ]:
            Fact.objects.create(
                account=agent.account,
                project=where,
                key=key,
                text=f"{key}!",
                valid_from=valid_from,
                valid_until=valid_until,
                retracted_at=retracted,
            )
        answer = start(agent.client, project="rockets")
        assert [(p["scope"], p["key"], p["text"]) for p in answer["preferences"]] == [
            ("global", "tone", "tone!"),
            ("project:rockets", "tests", "tests!"),
        ]
        assert sorted(fact["key"] for fact in answer["facts"]) == ["fuel", "pilot"]
        assert start(agent.client)["facts"] == []


class TestFinishing:
    def test_writes_the_named_fields_and_leaves_the_others(self, agent: Agent) -> None:
        url = f"{INTERACTIONS}{start(agent.client)['id']}/"
        agent.client.patch(url, {"response": " kept \n", "tokens_in": 12}, format="json")
        answer = agent.client.patch(url, {"tokens_out": 0, "token_source": "api"}, format="json")
        assert answer.status_code == 200
        shown = answer.json()
        assert (shown["response"], shown["tokens_in"], shown["tokens_out"]) == (" kept \n", 12, 0)
        assert agent.client.get(url).json() == shown
        agent.client.patch(url, {"response": None}, format="json")
        assert agent.client.get(url).json()["response"] is None


class TestReporting:
    @pytest.mark.parametrize("source", OutcomeSource.values)
    def test_takes_the_source_from_the_key(self, account: Account, source: str) -> None:
        own = make_agent(account, source, ["loop"])
        answer = report(own.client, start(own.client)["id"], "tests_passed", detail="all green")
        assert answer.status_code == 201
        outcome = Outcome.objects.get()
        assert answer.json() == {"id": str(outcome.pk), "signal": "tests_passed", "reward": 1.0, "source": source}
        assert (outcome.source, outcome.api_key_id, outcome.detail) == (source, own.key.pk, "all green")

    @pytest.mark.parametrize("signal", [signal for signal in SIGNALS if signal != "retracted"])
    def test_prices_every_signal(self, agent: Agent, signal: str) -> None:
        assert report(agent.client, start(agent.client)["id"], signal).json()["reward"] == float(REWARDS[signal])

    def test_again_what_was_said_last_is_the_same_row(self, agent: Agent, quiet_nudges: list[tuple[str, UUID]]) -> None:
        own = start(agent.client)["id"]
        first = report(agent.client, own, "accepted")
        quiet_nudges.clear()
        with nothing_changes():
            again = report(agent.client, own, "accepted", detail="I said so")
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json()
        assert quiet_nudges == []

    def test_another_signal_is_another_row_and_every_row_stays(self, agent: Agent, machine: Agent) -> None:
        own = start(agent.client)["id"]
        said = ["accepted", "rejected", "accepted", "retracted", "accepted"]
        assert [report(agent.client, own, signal).status_code for signal in said] == [201] * 5
        assert report(machine.client, own, "failed").status_code == 201
        rows = Outcome.objects.order_by("source", "sequence").values_list("source", "sequence", "signal")
        expected = [("caller", i, signal) for i, signal in enumerate(said, start=1)]
        assert list(rows) == [*expected, ("machine", 1, "failed")]

    def test_a_retraction_needs_something_to_retract(self, agent: Agent, machine: Agent) -> None:
        own = start(agent.client)["id"]
        report(agent.client, own, "accepted")
        with nothing_changes():
            document = refused(report(machine.client, own, "retracted"), 400, "signal")
        assert "machine" in document["detail"]
        assert report(agent.client, own, "retracted").json()["reward"] == 0.0

    def test_an_unknown_signal_is_told_the_vocabulary(self, agent: Agent) -> None:
        own = start(agent.client)["id"]
        with nothing_changes():
            (sentence,) = refused(report(agent.client, own, "great"), 400, "signal")["errors"]["signal"]
        assert all(signal in sentence for signal in SIGNALS)

    def test_on_an_interaction_that_is_not_there_is_not_found(self, agent: Agent) -> None:
        with nothing_changes():
            refused(report(agent.client, MISSING, "accepted"), 404)

    def test_is_listed_with_whether_it_was_credited(self, agent: Agent, machine: Agent) -> None:
        own = start(agent.client)["id"]
        report(machine.client, own, "failed", detail="exit code 1")
        (row,) = agent.client.get(OUTCOMES).json()["results"]
        assert (row["interaction"], row["source"], row["detail"], row["credited_at"]) == (
            own,
            "machine",
            "exit code 1",
            None,
        )


@contextmanager
def statements(expected: int) -> Iterator[None]:
    """Exactly so many statements run; a failure lists them."""
    with CaptureQueriesContext(connection) as queries:
        yield
    assert len(queries) == expected, "\n".join(" ".join(query["sql"].split())[:150] for query in queries)


class TestWhatARequestCosts:
    """The numbers are kept here on purpose: a change of one is a decision."""

    @pytest.mark.parametrize("n", [10, 60])
    def test_an_answer_of_five_lessons_takes_as_many_statements_in_any_store(
        self, agent: Agent, lesson: Callable[..., Any], n: int
    ) -> None:
        many_lessons(lesson, n)
        scope = {"project": "rockets", "session": "s"}
        start(agent.client, "sort the names and keep their case", **scope)
        with statements(START_QUERIES):
            answer = start(agent.client, "sort the names and keep their case", **scope)
        assert len(answer["lessons"]) == 5

    @pytest.mark.parametrize("n", [1, 20])
    def test_preferences_and_facts_take_as_many_statements_however_many_there_are(self, agent: Agent, n: int) -> None:
        common = {"account": agent.account, "confidence": 1.0, "evidence_count": 1, "revision": 1, "enabled": True}
        for i in range(n):
            Preference.objects.create(scope="global", key=f"key {i}", text="Say it.", **common)
        start(agent.client)
        with statements(START_ALONE_QUERIES):
            answer = start(agent.client, retrieve=False)
        assert len(answer["preferences"]) == n

    def test_finishing_and_reporting_take_a_fixed_number(self, agent: Agent, lesson: Callable[..., Any]) -> None:
        many_lessons(lesson, 8)
        own = start(agent.client, "sort the names and keep their case")["id"]
        with statements(FINISH_QUERIES):
            agent.client.patch(f"{INTERACTIONS}{own}/", {"response": "done"}, format="json")
        with statements(REPORT_QUERIES):
            report(agent.client, own, "accepted")
        with statements(REPEATED_REPORT_QUERIES):
            report(agent.client, own, "accepted")
