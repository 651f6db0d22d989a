"""The rules' worked numbers once more, from outside: what an agent does, and what the store makes of it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memory.models import Lesson, LessonStanding, Outcome
from tests.conftest import Agent
from tests.http.test_quarantine_walk import report, start

pytestmark = pytest.mark.django_db
WORDS = ("socket", "cursor", "handle", "session")
SUBJECT = "Close every database {} in the worker before the connection pool forks its children."
TASK = "close the database socket cursor handle session in the worker before the pool forks, part {}"


@pytest.fixture
def together(lesson: Callable) -> Callable[[int], list[Lesson]]:
    """Lessons that are always handed out together."""
    return lambda n: [lesson(SUBJECT.format(word)) for word in WORDS[:n]]


def lose(agent: Agent, n: int, *, k: int, first: int = 0, task: str = TASK, signal: str = "failed") -> None:
    for part in range(first, first + n):
        started = start(agent, task.format(part), k=k)
        assert len(started["lessons"]) == k
        report(agent, started["id"], signal)


def states(lessons: list[Lesson]) -> set[str]:
    return set(Lesson.objects.filter(pk__in=[found.pk for found in lessons]).values_list("state", flat=True))


def evidence(agent: Agent, lesson: Lesson) -> dict:
    return agent.client.get(f"/api/v1/lessons/{lesson.pk}/evidence/").json()


def gate(found: dict, name: str) -> dict:
    return next(gate for gate in found["gates"] if gate["name"] == name)


def test_four_lessons_that_always_travel_together_share_the_blame(agent: Agent, together: Callable) -> None:
    four = together(4)
    lose(agent, 5, k=4)
    assert gate(evidence(agent, four[0]), "share")["value"] == pytest.approx(1.25)
    lose(agent, 1, k=4, first=5)
    assert gate(evidence(agent, four[0]), "share")["value"] == pytest.approx(1.5)
    assert states(four) == {"active"}


def test_a_lesson_that_fails_alone_is_quarantined_by_the_fifth_loss(agent: Agent, together: Callable) -> None:
    (alone,) = together(1)
    lose(agent, 4, k=1)
    assert states([alone]) == {"active"}, "four losses never do"
    lose(agent, 1, k=1, first=4, signal="rejected")
    assert states([alone]) == {"quarantined"}


def test_five_losses_on_one_task_do_not_and_six_do(agent: Agent, together: Callable) -> None:
    (alone,) = together(1)
    lose(agent, 5, k=1, task=TASK.format("the same"))
    assert states([alone]) == {"active"}
    lose(agent, 1, k=1, task=TASK.format("the same"))
    assert states([alone]) == {"quarantined"}


def test_six_failures_in_a_cohort_of_three_are_two_losses_and_not_improbable_at_six_retrievals(
    agent: Agent, together: Callable
) -> None:
    three = together(3)
    lose(agent, 6, k=3)
    found = evidence(agent, three[0])
    assert gate(found, "share")["passed"], "6 x 1/3 counts as 2 although it is 1.9999999999999998"
    assert found["p_value"] == pytest.approx(0.1370**2)
    assert states(three) == {"active"}


def test_the_same_six_failures_after_six_wins_are_improbable(agent: Agent, together: Callable) -> None:
    three = together(3)
    lose(agent, 6, k=3, signal="tests_passed")
    lose(agent, 6, k=3, first=6)
    found = evidence(agent, three[0])
    assert found["p_value"] == pytest.approx(0.0759**2)
    assert states(three) == {"quarantined"}


def test_one_win_clears(agent: Agent, together: Callable) -> None:
    (alone,) = together(1)
    lose(agent, 4, k=1)
    lose(agent, 1, k=1, first=4, signal="accepted")
    lose(agent, 4, k=1, first=5)
    assert states([alone]) == {"active"}


def test_every_signal_has_its_price(agent: Agent, together: Callable) -> None:
    together(1)
    prices = {
        "tests_passed": 1.0, "used": 0.9, "copied": 0.85, "accepted": 0.8, "edited": 0.75, "compiled": 0.7,
        "rejected": -0.5, "failed": -1.0, "retracted": 0.0,
    }  # fmt: skip
    work = start(agent, "anything")["id"]
    for signal, price in prices.items():
        answer = agent.client.post(f"/api/v1/interactions/{work}/outcomes/", {"signal": signal}, format="json")
        assert answer.json()["reward"] == price
    assert Outcome.objects.count() == len(prices)


def considered(agent: Agent, task: str) -> dict:
    body = {"task": task, "explain": True}
    return agent.client.post("/api/v1/retrieve/", body, format="json").json()["explain"][0]


def test_the_usage_boost_and_the_age_factor_stand_in_the_explanation(agent: Agent, together: Callable) -> None:
    (alone,) = together(1)
    lose(agent, 1, k=1, signal="tests_passed")
    found = considered(agent, TASK.format(0))
    assert found["usage_boost"] == pytest.approx(0.000909, abs=1e-6)
    assert found["fused_score"] == pytest.approx(1 / 61 + 1 / 61)
    assert found["score"] == pytest.approx((found["fused_score"] + found["usage_boost"]) * found["age_factor"])
    for days, factor in ((30, 0.95), (60, 0.925)):
        LessonStanding.objects.filter(lesson=alone).update(last_win_at=timezone.now() - timedelta(days=days))
        assert considered(agent, TASK.format(0))["age_factor"] == pytest.approx(factor, abs=1e-4)
