"""Contradictions and plans for pruning over HTTP: who may see them, who may apply one, and what happens then."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from memory.models import Account, Contradiction, EmbeddingSpace, Lesson, TrustEvent
from memory.services import contradiction
from tests.conftest import Agent, make_agent
from tests.services.near import place

pytestmark = pytest.mark.django_db

PLAN, APPLY, CONTRADICTIONS = "/api/v1/prune/plan/", "/api/v1/prune/apply/", "/api/v1/contradictions/"
ONE = "Close the `cursor` before the connection goes back to the pool."
TWO = "Close each `cursor` before its connection goes back to the pool."
NEVER = "Never close the `cursor` before the connection goes back to the pool."


@pytest.fixture
def governor(account: Account) -> Agent:
    """A key that may govern."""
    return make_agent(account, "caller", ["read", "govern"])


@pytest.fixture
def twins(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
    """The first has the longer text, and is kept."""
    return place(lesson(TWO), space, 0.99), place(lesson(ONE), space, 0.99)


def get(agent: Agent, path: str, **query: str) -> Any:
    answer = agent.client.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def apply(agent: Agent, body: dict[str, Any], key: str | None = None) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return agent.client.post(APPLY, body, format="json", headers=headers)


class TestThePlan:
    def test_it_shows_who_is_kept_and_who_would_go_with_their_evidence(self, governor, twins) -> None:
        kept, gone = twins
        plan = get(governor, PLAN)
        assert plan["lessons"] == 1
        assert plan["prune_similarity"] == 0.93
        (cluster,) = plan["clusters"]
        assert cluster["keeper"] == {"id": str(kept.pk), "text": TWO, "caller": 0, "machine": 0, "wins": 0}
        (member,) = cluster["members"]
        assert (member["id"], member["text"]) == (str(gone.pk), ONE)
        assert member["similarity"] > 0.93
        assert Lesson.objects.count() == 2

    def test_asking_again_gives_the_same_plan(self, governor, twins) -> None:
        assert get(governor, PLAN) == get(governor, PLAN)

    def test_an_empty_plan_is_an_answer(self, governor, space) -> None:
        assert get(governor, PLAN)["clusters"] == []

    def test_without_a_model_it_says_so(self, governor, space) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        try:
            assert governor.client.get(PLAN).status_code == 503
        finally:
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)


class TestApplying:
    def test_the_lessons_of_the_plan_become_one(self, governor, twins) -> None:
        kept, gone = twins
        digest = get(governor, PLAN)["digest"]
        answer = apply(governor, {"digest": digest})
        assert (answer.status_code, answer.json()) == (
            200,
            {
                "digest": digest,
                "pruned": 1,
                "clusters": [{"keeper": str(kept.pk), "pruned": [str(gone.pk)], "excluded": [], "skipped": []}],
            },
        )
        assert list(Lesson.objects.all()) == [kept]
        assert TrustEvent.objects.get(lesson=gone.pk).actor == f"api_key:{governor.key.prefix}"

    def test_applying_twice_is_applying_once(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        first, second = apply(governor, {"digest": digest}), apply(governor, {"digest": digest})
        assert (second.status_code, second.json()) == (200, first.json())
        assert TrustEvent.objects.filter(kind="pruned").count() == 1

    def test_a_store_that_moved_is_a_conflict_that_names_what_moved(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        Lesson.objects.filter(pk=twins[1].pk).update(state="quarantined")
        answer = apply(governor, {"digest": digest})
        assert answer.status_code == 409
        assert answer.json()["errors"] == {"digest": [f"{twins[1].pk}: not_active"]}
        assert Lesson.objects.count() == 2

    def test_what_is_excluded_stays(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        exclude = [{"lesson": str(twins[1].pk), "reason": "it says more"}]
        answer = apply(governor, {"digest": digest, "exclude": exclude})
        (cluster,) = answer.json()["clusters"]
        assert (cluster["pruned"], cluster["excluded"]) == ([], [str(twins[1].pk)])
        assert get(governor, PLAN)["clusters"] == []

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "digest"),
            ({"digest": "x" * 65}, "digest"),
            ({"digest": "0" * 64, "excluded": []}, "excluded"),
            ({"digest": "0" * 64, "exclude": "all"}, "exclude"),
            ({"digest": "0" * 64, "exclude": [{"lesson": 7, "reason": "x"}]}, "exclude.0.lesson"),
            ({"digest": "0" * 64, "exclude": [{"lesson": "x", "reason": "x"}]}, "exclude.0.lesson"),
            ({"digest": "0" * 64, "exclude": [{"lesson": str(Lesson().pk)}]}, "exclude.0.reason"),
            ({"digest": "0" * 64, "exclude": [{"lesson": str(Lesson().pk), "reason": " "}]}, "exclude.0.reason"),
            (
                {"digest": "0" * 64, "exclude": [{"lesson": str(Lesson().pk), "reason": "x", "why": "y"}]},
                "exclude.0.why",
            ),
        ],
    )
    def test_a_wrong_field_is_named(self, governor, space, body, field) -> None:
        answer = apply(governor, body)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])

    def test_an_unknown_plan_is_not_found(self, governor, space) -> None:
        assert apply(governor, {"digest": "0" * 64}).status_code == 404

    def test_a_stranger_in_the_exclusions_is_named(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        answer = apply(governor, {"digest": digest, "exclude": [{"lesson": str(Lesson().pk), "reason": "x"}]})
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["exclude"])


class TestIdempotency:
    def test_the_same_key_replays_the_answer(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        first = apply(governor, {"digest": digest}, key="one")
        again = apply(governor, {"digest": digest}, key="one")
        assert (again.status_code, again.json()) == (200, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"

    def test_the_same_key_with_another_body_applies_nothing(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        exclude = [{"lesson": str(twins[1].pk), "reason": "it says more"}]
        apply(governor, {"digest": digest, "exclude": exclude}, key="one")
        assert apply(governor, {"digest": digest}, key="one").status_code == 409
        assert Lesson.objects.count() == 2


class TestWhoMay:
    @pytest.mark.parametrize("scopes", [["loop"], ["read"], ["loop", "read"], ["admin"]])
    def test_planning_and_applying_take_the_scope_govern(self, account, twins, scopes) -> None:
        other = make_agent(account, "caller", scopes)
        assert other.client.get(PLAN).status_code == 403
        assert apply(other, {"digest": "0" * 64}).status_code == 403
        assert Lesson.objects.count() == 2

    def test_contradictions_take_the_scope_read(self, agent, account, machine) -> None:
        assert get(agent, CONTRADICTIONS)["results"] == []
        assert machine.client.get(CONTRADICTIONS).status_code == 403

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_an_account_plans_and_applies_its_own_lessons_only(
        self, lesson, space, governor, account, rival_account
    ) -> None:
        for text in (ONE, TWO):
            place(lesson(text, account_id=account.pk), space, 0.99)
        rival = make_agent(rival_account, "caller", ["govern"])
        assert get(rival, PLAN)["clusters"] == []
        digest = get(governor, PLAN)["digest"]
        assert apply(rival, {"digest": digest}).status_code == 404
        assert Lesson.objects.count() == 2
        assert apply(governor, {"digest": digest}).json()["pruned"] == 1


class TestContradictions:
    @pytest.fixture
    def opposites(self, lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
        found = place(lesson(TWO), space, 0.95), place(lesson(NEVER), space, 0.95)
        contradiction.detect()
        return found

    def test_both_sides_are_shown_with_what_speaks_for_it(self, agent, opposites) -> None:
        (row,) = get(agent, CONTRADICTIONS)["results"]
        assert (row["basis"], row["verdict"]) == ("polarity_only:prohibition", None)
        assert {(row[side]["id"], row[side]["text"], row[side]["state"]) for side in ("first", "second")} == {
            (str(lesson.pk), lesson.text, "active") for lesson in opposites
        }

    def test_they_can_be_asked_for_by_lesson_and_by_whether_they_are_open(self, agent, opposites, operator) -> None:
        pk = str(opposites[0].pk)
        assert len(get(agent, CONTRADICTIONS, open="true", lesson=pk)["results"]) == 1
        assert get(agent, CONTRADICTIONS, open="false")["results"] == []
        assert get(agent, CONTRADICTIONS, lesson=str(Lesson().pk))["results"] == []
        Contradiction.objects.update(verdict="keep_both", decided_by=operator)
        assert get(agent, CONTRADICTIONS, open="true")["results"] == []
        assert get(agent, CONTRADICTIONS, open="false")["results"][0]["verdict"] == "keep_both"

    def test_a_side_that_is_gone_is_shown_without_text(self, agent, opposites) -> None:
        pk = str(opposites[0].pk)
        opposites[0].lessonembedding_set.all().delete()
        opposites[0].delete()
        (row,) = get(agent, CONTRADICTIONS)["results"]
        gone = next(row[side] for side in ("first", "second") if row[side]["id"] == pk)
        assert gone == {"id": pk, "text": None, "state": None}

    def test_what_somebody_keeps_apart_although_it_agrees_is_not_one(self, governor, twins) -> None:
        digest = get(governor, PLAN)["digest"]
        apply(governor, {"digest": digest, "exclude": [{"lesson": str(twins[1].pk), "reason": "it says more"}]})
        assert Contradiction.objects.count() == 1
        assert get(governor, CONTRADICTIONS)["results"] == []

    @override_settings(SONDER_LESSON_SCOPE="account")
    def test_another_accounts_contradictions_are_not_shown(self, lesson, space, agent, rival, account) -> None:
        for text in (TWO, NEVER):
            place(lesson(text, account_id=account.pk), space, 0.95)
        contradiction.detect()
        assert len(get(agent, CONTRADICTIONS)["results"]) == 1
        assert get(rival, CONTRADICTIONS)["results"] == []

    def test_a_page_costs_the_same_number_of_queries_for_one_row_and_for_many(self, agent, lesson, space) -> None:
        get(agent, CONTRADICTIONS)  # notes that the key was used
        counts = []
        for n in range(5):
            for text in (TWO, NEVER):
                place(lesson(text.replace("cursor", f"cursor_{n}")), space, 0.95, n)
            contradiction.detect()
            if n in (0, 4):
                with CaptureQueriesContext(connection) as queries:
                    assert len(get(agent, CONTRADICTIONS)["results"]) == n + 1
                counts.append(len(queries))
        assert counts[0] == counts[1]
