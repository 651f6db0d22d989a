"""The whole loop unattended: a demo store, a server with its worker, and the scripted agent, over HTTP."""

import json
from pathlib import Path
from typing import Any

from memory.management.agent.told import MODEL_REASONS, REASONS
from tests.system.started import free_port, up
from tests.system.stores import manage, new_store

INTERACTIONS = 500
PATIENCE_SECONDS = 600  # for a machine that does much else; on a quiet one the run takes about a minute


def test_lessons_are_born_refused_found_harmful_and_cleared_and_the_store_is_sound_afterwards() -> None:
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
            assert manage(var, "seed_demo").returncode == 0
            arguments = ["--url", product.address, "--model", str(port), "--interactions", str(INTERACTIONS), "--json"]
            arguments += ["--wait", str(PATIENCE_SECONDS / 2)]
            run = manage(var, "demo_agent", *arguments, patience=PATIENCE_SECONDS)
            assert run.returncode == 0, run.stderr
            assert f"{INTERACTIONS}/{INTERACTIONS}" in run.stderr  # the progress bar
            everything_came(json.loads(run.stdout))
            sound(var)
            taken_away(var)
            sound(var)


def everything_came(told: dict[str, Any]) -> None:
    """Each reason, a quarantine, a rehabilitation, a contradiction and a plan."""
    assert (told["interactions"], told["open"], told["missing"]) == (INTERACTIONS, 0, [])
    shown = told["shown"]
    expected = {*REASONS, *MODEL_REASONS, "quarantined", "rehabilitated", "contradiction", "prune plan"}
    assert {name for name, n in shown.items() if n} == expected
    assert (shown["stored"], shown["rejected_value"]) == (15, 1)
    assert (told["events"][0], told["events"][-1]) == ("quarantined", "rehabilitated")


def sound(var: Path) -> None:
    checked = manage(var, "doctor", "--json")
    assert json.loads(checked.stdout)["clean"], checked.stdout


def taken_away(var: Path) -> None:
    """One erasure leaves nothing of what the agent did and learned, and what was there before it."""
    find = "from memory.models import Project; print(Project.objects.get(slug='demo-agent').pk)"
    project = manage(var, "shell", "--verbosity=0", "--command", find).stdout.strip()
    assert manage(var, "erase", "project", project, "--apply").returncode == 0
    look = "from memory.models import Lesson; print(*Lesson.objects.values_list('origin', flat=True).distinct())"
    assert manage(var, "shell", "--verbosity=0", "--command", look).stdout.strip() == "seeded"
