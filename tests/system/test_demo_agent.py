"""The whole loop unattended: a demo store, a server with its worker, and the scripted agent, over HTTP."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memory.management.agent.play import LEAST, REASONS
from tests.system.stores import manage, new_store, wait_until
from tests.system.test_up import Up, up

INTERACTIONS = 250
SETTINGS = {
    "SONDER_TRUST_POLICY": "reference",
    "SONDER_PROBATION_AFTER_HOURS": "0",
    "SONDER_THROTTLE_LOOP": "100000/min",
    "SONDER_THROTTLE_READ": "100000/min",
    "SONDER_SWEEP_SECONDS": "5",
}


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
    with new_store() as var, pytest.MonkeyPatch.context() as patch:
        var.parent.mkdir(exist_ok=True)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        with up(var) as product:
            assert manage(var, "seed_demo", "--json").returncode == 0
            arguments = ["--url", product.address, "--interactions", str(INTERACTIONS), "--json"]
            yield Played(product=product, run=manage(var, "demo_agent", *arguments))


def test_nothing_that_should_have_come_of_it_is_missing(played: Played) -> None:
    assert (played.run.returncode, played.told["missing"]) == (0, []), played.run.stderr
    assert played.told["interactions"] == INTERACTIONS


def test_lessons_were_stored_and_refused_for_each_reason(played: Played) -> None:
    distilled = played.told["distillations"]
    assert {reason for reason, n in distilled.items() if n} == set(REASONS)
    assert distilled["stored"] >= 15
    assert distilled["rejected_value"] == 1


def test_the_harmful_lesson_was_quarantined_and_came_back(played: Played) -> None:
    events = played.told["events"]
    assert events[0] == "quarantined"
    assert events[-1] == "rehabilitated"


def test_opposites_wait_for_a_person_and_what_is_there_twice_can_be_merged(played: Played) -> None:
    assert played.told["contradictions"] >= 1
    assert played.told["prune_clusters"] >= 1


def test_the_store_is_sound_afterwards(played: Played) -> None:
    wait_until(lambda: manage(played.product.var, "doctor").returncode == 0)
    checked = json.loads(manage(played.product.var, "doctor", "--json").stdout)
    assert checked["clean"], checked


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
