"""The whole loop unattended: a demo store, a server with its worker, and the scripted agent, over HTTP."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memory.management.agent.play import LEAST
from memory.management.agent.told import MODEL_REASONS, REASONS
from tests.system.started import Up, free_port, up
from tests.system.stores import manage, new_store

INTERACTIONS = 500
PATIENCE_SECONDS = 600  # for a machine that does much else; on a quiet one the run takes less than a minute


@dataclass(frozen=True, kw_only=True)
class Played:
    """The store after a run; the server still runs."""

    product: Up
    run: subprocess.CompletedProcess[str]

    @property
    def told(self) -> dict[str, Any]:
        assert self.run.stdout, self.run.stderr
        return dict(json.loads(self.run.stdout))


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    port = free_port()
    settings = {
        "SONDER_TRUST_POLICY": "reference",
        "SONDER_PROBATION_AFTER_HOURS": "0",
        "SONDER_THROTTLE_LOOP": "100000/min",
        "SONDER_THROTTLE_READ": "100000/min",
        "SONDER_SWEEP_SECONDS": "5",
        "SONDER_DISTILLER_URL": f"http://127.0.0.1:{port}/v1",
        "SONDER_DISTILLER_MODEL": "scripted",
        "SONDER_DISTILL_MAX_ATTEMPTS": "1",
    }
    with new_store() as var:
        var.parent.mkdir(exist_ok=True)
        with up(var, **settings) as product:
            assert manage(var, "seed_demo", "--json").returncode == 0
            arguments = ["--url", product.address, "--model", str(port), "--interactions", str(INTERACTIONS), "--json"]
            run = manage(var, "demo_agent", *arguments, patience=PATIENCE_SECONDS)
            yield Played(product=product, run=run)


def test_nothing_that_should_have_come_of_it_is_missing(played: Played) -> None:
    assert (played.run.returncode, played.told["missing"]) == (0, []), played.run.stderr
    assert (played.told["interactions"], played.told["open"]) == (INTERACTIONS, 0)


def test_progress_was_shown_beside_the_result(played: Played) -> None:
    assert f"{INTERACTIONS}/{INTERACTIONS}" in played.run.stderr


def test_lessons_were_stored_and_refused_for_each_reason(played: Played) -> None:
    shown = played.told["shown"]
    assert all(shown[reason] for reason in (*REASONS, *MODEL_REASONS))
    assert shown["stored"] == 15
    assert shown["rejected_value"] == 1


def test_the_harmful_lesson_was_quarantined_and_came_back(played: Played) -> None:
    events = played.told["events"]
    assert events[0] == "quarantined"
    assert events[-1] == "rehabilitated"


def test_opposites_wait_for_a_person_and_what_is_there_twice_can_be_merged(played: Played) -> None:
    assert played.told["shown"]["contradiction"] >= 1
    assert played.told["shown"]["prune plan"] >= 1


def test_the_store_is_sound_afterwards_and_what_the_agent_left_can_be_taken_away(played: Played) -> None:
    var = played.product.var
    checked = manage(var, "doctor", "--json")
    assert json.loads(checked.stdout)["clean"], checked.stdout
    found = "from memory.models import Project; print(Project.objects.get(slug='demo-agent').pk)"
    project = manage(var, "shell", "--verbosity=0", "--command", found).stdout.strip()
    assert manage(var, "erase", "project", project, "--apply").returncode == 0
    left = "from memory.models import Lesson; print(set(Lesson.objects.values_list('origin', flat=True)))"
    assert manage(var, "shell", "--verbosity=0", "--command", left).stdout.strip() == "{'seeded'}"
    checked = manage(var, "doctor", "--json")
    assert json.loads(checked.stdout)["clean"], checked.stdout


def test_a_run_that_is_too_short_for_the_story_is_refused_at_once(played: Played) -> None:
    refused = manage(played.product.var, "demo_agent", "--interactions", str(LEAST - 1))
    assert refused.returncode == 1
    assert f"use {LEAST} or more" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_server_that_does_not_answer_is_named(played: Played) -> None:
    refused = manage(played.product.var, "demo_agent", "--url", "http://127.0.0.1:1")
    assert refused.returncode == 1
    assert "http://127.0.0.1:1/api/v1/ does not answer" in refused.stderr
    assert "Traceback" not in refused.stderr
