"""Policy `trial` over HTTP: the coin, the controls, and the evidence that a person reads."""

from collections.abc import Callable, Iterator

import pytest
from django.test import override_settings

from memory.models import LessonUsage
from memory.services.credit import sweep
from tests.conftest import Agent
from tests.http.test_quarantine_walk import TASK, TEXT, report, start

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def trial_policy() -> Iterator[None]:
    with override_settings(SONDER_TRUST_POLICY="trial"):
        yield


def lose_until(agent: Agent, lesson: Callable, stage: Callable[[object], bool]) -> object:
    bad = lesson(TEXT)
    for attempt in range(60):
        started = start(agent, TASK.format(attempt))
        if started["lessons"]:
            report(agent, started["id"], "failed")
        bad.refresh_from_db()
        if stage(bad):
            return bad
    raise AssertionError("never got there")


def test_a_lesson_on_trial_is_handed_out_by_a_coin_and_every_toss_is_logged(agent: Agent, lesson: Callable) -> None:
    bad = lose_until(
        agent, lesson, lambda found: found.lessonstanding.on_trial if hasattr(found, "lessonstanding") else False
    )
    before = LessonUsage.objects.filter(exposure="withheld_trial").count()
    answers = [start(agent, TASK.format(n)) for n in range(100, 140)]
    shown = [a for a in answers if a["lessons"]]
    assert 8 <= len(shown) <= 32
    assert {found["standing"] for a in shown for found in a["lessons"]} == {"trial"}
    assert LessonUsage.objects.filter(exposure="withheld_trial").count() - before == 40 - len(shown)
    assert set(LessonUsage.objects.filter(interaction__in=[a["id"] for a in answers]).values_list("probability")) == {
        (0.5,)
    }
    assert all(TEXT not in a["context"] for a in answers if not a["lessons"])
    assert bad.state == "active"


def test_the_same_interaction_id_would_get_the_same_toss(agent: Agent, lesson: Callable) -> None:
    lose_until(
        agent, lesson, lambda found: found.lessonstanding.on_trial if hasattr(found, "lessonstanding") else False
    )
    looked_up = agent.client.post("/api/v1/retrieve/", {"task": TASK.format(1)}, format="json").json()
    assert [found["standing"] for found in looked_up["lessons"]] == ["trial"], "a look-up tosses no coin"


def test_the_evidence_names_the_factors_and_compares_with_and_without(agent: Agent, lesson: Callable) -> None:
    bad = lose_until(agent, lesson, lambda found: found.state == "quarantined")
    for n in range(200, 210):
        started = start(agent, TASK.format(n))
        assert started["lessons"] == []
        report(agent, started["id"], "used")
    sweep()
    evidence = agent.client.get(f"/api/v1/lessons/{bad.pk}/evidence/").json()
    assert (evidence["policy"], evidence["state"]) == ("trial", "quarantined")
    assert evidence["odds"] >= 200
    assert evidence["with_it"]["lost"] == evidence["with_it"]["n"] >= 7
    assert evidence["without_it"]["quarantine"] == {"lost": 0, "n": 10, "expected": pytest.approx(2.5, abs=1.5)}
    assert {"rate", "task_factor", "peer_factor", "niche_factor", "expected", "odds"} <= set(evidence["rows"][0])
    assert evidence["words"][2].startswith("With this lesson ")
