"""Policy `trial` over HTTP: the coin, the controls, and the evidence that a person reads."""

from collections.abc import Callable, Iterator

import pytest
from django.test import override_settings

from memory.models import LessonStanding, LessonUsage
from memory.rules.probation import interaction_fraction, withheld_share
from memory.services.credit import sweep
from memory.services.lesson_verdicts import release_to_trial
from tests.conftest import Agent
from tests.http.test_quarantine_walk import TASK, TEXT, report, start

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def trial_policy() -> Iterator[None]:
    with override_settings(SONDER_TRUST_POLICY="trial"):
        yield


def lose_until(agent: Agent, lesson: Callable, stage: Callable[[object], bool]) -> object:
    bad = lesson(TEXT)
    for attempt in range(1000):  # a coin keeps it out of more and more of them
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
    standing = LessonStanding.objects.get(pk=bad.pk)
    withheld = withheld_share(standing.s)
    assert 0.3 < withheld < 0.7  # it has just passed ten to one
    before = LessonUsage.objects.filter(exposure="withheld_trial").count()
    answers = [start(agent, TASK.format(n)) for n in range(100, 140)]
    shown = [a for a in answers if a["lessons"]]
    assert 1 <= len(shown) <= 39
    assert {found["standing"] for a in shown for found in a["lessons"]} == {"trial"}
    assert LessonUsage.objects.filter(exposure="withheld_trial").count() - before == 40 - len(shown)
    for usage in LessonUsage.objects.filter(interaction__in=[a["id"] for a in answers]):
        left_out = interaction_fraction(bad.pk, usage.interaction_id) < withheld
        assert usage.exposure == ("withheld_trial" if left_out else "served")
        assert usage.probability == pytest.approx(withheld if left_out else 1 - withheld)
    assert all(TEXT not in a["context"] for a in answers if not a["lessons"])
    assert bad.state == "active"


def test_a_lesson_released_to_trial_is_tossed_for_as_one_that_has_just_come_on_trial(
    agent: Agent, lesson: Callable
) -> None:
    with override_settings(SONDER_QUARANTINE_ODDS=50.0, SONDER_RELEASE_ODDS=20.0):  # sooner than at 200
        bad = lose_until(agent, lesson, lambda found: found.state == "quarantined")
    release_to_trial(bad.pk, reviewer=1, reason="it was the weather")
    answers = [start(agent, TASK.format(n)) for n in range(100, 110)]
    usages = LessonUsage.objects.filter(interaction__in=[a["id"] for a in answers])
    chances = [u.probability if u.exposure == "withheld_trial" else 1 - u.probability for u in usages]
    assert chances == pytest.approx([0.2] * 10), "ten to one, whatever the record was"
    report(agent, next(a["id"] for a in answers if a["lessons"]), "failed")
    started = start(agent, TASK.format(110))
    usage = LessonUsage.objects.get(interaction=started["id"])
    after = usage.probability if usage.exposure == "withheld_trial" else 1 - usage.probability
    assert after > 0.21, "what comes on top counts"


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
