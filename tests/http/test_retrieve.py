"""Looking lessons up has no consequences, and `explain` says of every candidate why it is in or out."""

from collections.abc import Callable
from math import isclose
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from memory.models import EmbeddingSpace, Lesson, LessonStanding
from memory.services.credit import sweep
from tests.conftest import Agent
from tests.http.calls import RETRIEVE, nothing_changes, report, start

pytestmark = pytest.mark.django_db

TASK = "make the worker survive a lost database connection"
TEXT = "Wrap every database call of the worker in `retry_once()` so that a lost connection does not end it."
SIMILAR = "Wrap every database call of the worker in `retry_once()` so that a lost connection does not end it early."
OTHER = "Sort names with `sorted(names, key=str.casefold)` so that case does not decide."
LOOK_UP_QUERIES = 11


def look_up(agent: Agent, task: str = TASK, **fields: object) -> dict[str, Any]:
    response = agent.client.post(RETRIEVE, {"task": task, **fields}, format="json")
    assert response.status_code == 200, response.content
    return dict(response.json())


def test_it_gives_the_lessons_that_an_interaction_would_be_handed(agent: Agent, lesson: Callable[..., Any]) -> None:
    kept = lesson(TEXT)
    lesson(OTHER)
    looked_up = look_up(agent)
    assert set(looked_up) == {"lessons", "mode"}
    assert [found["id"] for found in looked_up["lessons"]] == [str(kept.pk)]
    handed_out = start(agent.client, TASK)
    assert handed_out["mode"] == looked_up["mode"] == "hybrid"
    for one, other in zip(looked_up["lessons"], handed_out["lessons"], strict=True):
        assert isclose(one.pop("score"), other.pop("score"), rel_tol=1e-6)  # a lesson ages between the two
        assert one == other


@pytest.mark.parametrize("explain", [True, False])
def test_it_writes_nothing(agent: Agent, lesson: Callable[..., Any], explain: bool) -> None:
    lesson(TEXT)
    with nothing_changes():
        assert look_up(agent, explain=explain, project="never-seen")["lessons"]


def test_explain_gives_every_candidate_with_its_numbers_and_its_reason(
    agent: Agent, lesson: Callable[..., Any]
) -> None:
    kept, similar, other = lesson(TEXT), lesson(SIMILAR), lesson(OTHER)
    looked_up = look_up(agent, k=1, explain=True)
    rows = {row["id"]: row for row in looked_up["explain"]}
    assert set(rows) == {str(one.pk) for one in (kept, similar, other)}
    (handed,) = looked_up["lessons"]
    chosen = rows.pop(handed["id"])
    assert (chosen["reason"], chosen["gate"], chosen["mmr"] is not None) == ("", "passed", True)
    assert chosen["score"] == handed["score"]
    assert chosen["score"] == pytest.approx((chosen["fused_score"] + chosen["usage_boost"]) * chosen["age_factor"])
    assert rows[str(other.pk)]["reason"] == rows[str(other.pk)]["gate"] != "passed"
    (left_out,) = (row for pk, row in rows.items() if pk != str(other.pk))
    assert left_out["reason"] in {"outranked", "redundant"}
    assert [row["score"] for row in looked_up["explain"]] == sorted(
        (row["score"] for row in looked_up["explain"]), reverse=True
    )


def test_a_quarantined_lesson_is_listed_in_explain_alone(agent: Agent, lesson: Callable[..., Any]) -> None:
    kept = lesson(TEXT)
    assert look_up(agent)["lessons"]
    Lesson.objects.filter(pk=kept.pk).update(state="quarantined")
    with override_settings(SONDER_PROBATION_AFTER_HOURS=0.0, SONDER_PROBATION_SHARE=0.5):
        for attempt in range(10):  # half of such interactions would be a sample of its probation
            looked_up = look_up(agent, f"{TASK}, attempt {attempt}", explain=True)
            assert looked_up["lessons"] == []
            assert [(row["id"], row["reason"]) for row in looked_up["explain"]] == [(str(kept.pk), "quarantined")]


def test_a_lesson_on_trial_is_listed_with_its_standing_and_no_coin_is_tossed(
    agent: Agent, lesson: Callable[..., Any]
) -> None:
    kept = lesson(TEXT)
    with override_settings(SONDER_TRUST_POLICY="trial"):
        for attempt in range(4):
            report(agent.client, start(agent.client, f"{TASK}, attempt {attempt}")["id"], "failed")
        sweep()
        assert LessonStanding.objects.get().on_trial
        for attempt in range(10):
            (found,) = look_up(agent, f"{TASK}, time {attempt}")["lessons"]
            assert (found["id"], found["standing"]) == (str(kept.pk), "trial")


@pytest.mark.parametrize("state", ["candidate", "rejected", "superseded"])
def test_a_lesson_that_is_not_live_is_not_even_considered(agent: Agent, lesson: Callable[..., Any], state: str) -> None:
    kept = lesson(TEXT)
    Lesson.objects.filter(pk=kept.pk).update(state=state)
    looked_up = look_up(agent, explain=True)
    assert (looked_up["lessons"], looked_up["explain"]) == ([], [])


def test_without_a_usable_embedding_words_decide_and_the_answer_says_why(
    agent: Agent, lesson: Callable[..., Any]
) -> None:
    kept = lesson(TEXT)
    EmbeddingSpace.objects.update(is_active=False)
    looked_up = look_up(agent)
    assert looked_up["mode"] == "lexical"
    assert "reembed" in looked_up["note"]
    assert [(found["id"], found["similarity"]) for found in looked_up["lessons"]] == [(str(kept.pk), None)]
    assert start(agent.client, TASK)["mode"] == "lexical"
    assert look_up(agent, "bake a cake without eggs")["lessons"] == []


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("explain", [True, False])
def test_it_takes_as_many_statements_in_any_store(
    agent: Agent, lesson: Callable[..., Any], n: int, explain: bool
) -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    for i in range(n):
        lesson(f"Sort the {words[i % 8]} {words[i // 8]} names of list {i} with `sort_list_{i}()` and keep their case.")
    task = "sort the names and keep their case"
    look_up(agent, task)
    with CaptureQueriesContext(connection) as queries:
        looked_up = look_up(agent, task, explain=explain)
    assert len(looked_up["lessons"]) == 5
    assert len(queries) == LOOK_UP_QUERIES, "\n".join(" ".join(query["sql"].split())[:150] for query in queries)
