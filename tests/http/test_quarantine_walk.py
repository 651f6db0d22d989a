"""The product's promise, through HTTP alone: bad advice is found out, kept out, sampled, and forgiven on evidence."""

from collections.abc import Callable

import pytest
from django.test import override_settings

from memory.models import Lesson, LessonTombstone, LessonUsage, TrustEvent
from memory.services.credit import sweep
from tests.conftest import Agent

TEXT = "Wrap every database call in a bare `except:` so that the worker never crashes on a lost connection."
TASK = "make the worker survive a lost database connection, attempt {}"

pytestmark = pytest.mark.django_db


def start(agent: Agent, task: str, **fields: object) -> dict:
    answer = agent.client.post("/api/v1/interactions/", {"task": task, **fields}, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def report(agent: Agent, interaction: str, signal: str) -> None:
    answer = agent.client.post(f"/api/v1/interactions/{interaction}/outcomes/", {"signal": signal}, format="json")
    assert answer.status_code == 201, answer.content
    sweep()


def quarantine(agent: Agent, lesson: Lesson) -> None:
    for attempt in range(5):
        started = start(agent, TASK.format(attempt))
        assert [found["id"] for found in started["lessons"]] == [str(lesson.pk)]
        report(agent, started["id"], "failed")
    lesson.refresh_from_db()
    assert lesson.state == "quarantined"


def test_five_failures_on_several_tasks_take_a_lesson_out_of_retrieval(agent: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    looked_up = agent.client.post("/api/v1/retrieve/", {"task": TASK.format(0), "explain": True}, format="json").json()
    assert looked_up["lessons"] == []
    assert [(c["id"], c["reason"]) for c in looked_up["explain"]] == [(str(bad.pk), "quarantined")]
    assert LessonTombstone.objects.get().reason == "quarantined"


def test_the_evidence_shows_every_gate_and_every_loss(agent: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    evidence = agent.client.get(f"/api/v1/lessons/{bad.pk}/evidence/").json()
    assert evidence["state"] == "quarantined"
    assert [gate["passed"] for gate in evidence["gates"]] == [True] * 4
    assert [(row["signal"], row["cohort"], row["share"]) for row in evidence["rows"]] == [("failed", 1, 1.0)] * 5
    assert evidence["p_value"] == pytest.approx(0.1370**5)
    history = agent.client.get(f"/api/v1/lessons/{bad.pk}/history/").json()["results"]
    assert [event["kind"] for event in history] == ["quarantined"]


def test_another_account_sees_the_losses_as_a_count_only(agent: Agent, rival: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    evidence = rival.client.get(f"/api/v1/lessons/{bad.pk}/evidence/").json()
    assert evidence["rows"] == []
    assert evidence["rows_elsewhere"] == 5
    (event,) = rival.client.get(f"/api/v1/lessons/{bad.pk}/history/").json()["results"]
    assert (event["evidence"]["rows"], event["evidence"]["rows_elsewhere"]) == ([], 5)


def test_probation_waits_a_day_after_the_last_loss(agent: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    for attempt in range(40):
        assert start(agent, TASK.format(attempt))["lessons"] == []
    rows = LessonUsage.objects.filter(lesson=bad, exposure="withheld_quarantine")
    assert rows.count() == 40
    assert set(rows.values_list("probability", flat=True)) == {1.0}


@override_settings(SONDER_PROBATION_AFTER_HOURS=0.0)
def test_probation_admits_the_same_sampled_tasks_and_a_win_brings_the_lesson_back(
    agent: Agent, lesson: Callable
) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    admitted = [n for n in range(100) if start(agent, TASK.format(n))["lessons"]]
    assert 1 <= len(admitted) <= 12
    assert [n for n in admitted if start(agent, TASK.format(n))["lessons"]] == admitted
    started = start(agent, TASK.format(admitted[0]))
    assert started["lessons"][0]["standing"] == "probation"
    report(agent, started["id"], "tests_passed")
    bad.refresh_from_db()
    assert bad.state == "active"
    assert not LessonTombstone.objects.exists()
    kinds = TrustEvent.objects.filter(lesson=bad.pk).order_by("created_at", "id").values_list("kind", flat=True)
    assert sorted(kinds) == ["probation_opened", "quarantined", "rehabilitated"]
    assert start(agent, TASK.format(0))["lessons"][0]["standing"] == "active"


@override_settings(SONDER_PROBATION_AFTER_HOURS=0.0)
def test_a_loss_on_probation_is_noted_and_keeps_it_out(agent: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    quarantine(agent, bad)
    admitted = next(n for n in range(100) if start(agent, TASK.format(n))["lessons"])
    report(agent, start(agent, TASK.format(admitted))["id"], "failed")
    bad.refresh_from_db()
    assert bad.state == "quarantined"
    assert TrustEvent.objects.filter(lesson=bad.pk, kind="probation_loss").count() == 1


def test_correcting_one_loss_to_a_win_lifts_the_quarantine(agent: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    ids = []
    for attempt in range(5):
        ids.append(start(agent, TASK.format(attempt))["id"])
        report(agent, ids[-1], "failed")
    bad.refresh_from_db()
    assert bad.state == "quarantined"
    report(agent, ids[2], "accepted")
    bad.refresh_from_db()
    assert bad.state == "active"


def test_a_machine_that_grades_itself_quarantines_under_the_reference_policy_too(
    agent: Agent, machine: Agent, lesson: Callable
) -> None:
    bad = lesson(TEXT)
    for attempt in range(5):
        report(machine, start(machine, TASK.format(attempt))["id"], "failed")
    bad.refresh_from_db()
    assert bad.state == "quarantined"
