"""The README's walk, copied and pasted: it does what the README says, on a product started as its reader starts it."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.started import Up, up
from tests.system.stores import ROOT, copy, environment, manage, new_store

README = (ROOT / "README.md").read_text(encoding="utf-8")
PATIENCE_SECONDS = 240
START = re.compile(r"^((?:SONDER_\w+=\S+ )+)make run$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The walk after its end; the product still runs."""

    product: Up
    output: str
    key: str  # another key of the account that the walk made

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self.product.address + path, headers={"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def lesson(self) -> dict[str, Any]:
        (found,) = self.get("/api/v1/lessons/?q=bare+except")["results"]
        return dict(found)


def settings_of_the_reader() -> dict[str, str]:
    """The settings that the README starts the product with; nothing of this test run's own."""
    (line,) = START.findall(README)
    return dict(pair.split("=") for pair in line.split())


@pytest.fixture(scope="module")
def walk(template: Path) -> Iterator[Walk]:
    with new_store() as var, pytest.MonkeyPatch.context() as patch:
        copy(template, var)  # nobody has used it: this is its first start
        for name in [name for name in os.environ if name.startswith("SONDER_")]:
            patch.delenv(name)
        for name, value in settings_of_the_reader().items():
            patch.setenv(name, value)
        with up(var) as product:
            yield Walk(product=product, output=take(product), key=another_key(var))


def take(product: Up) -> str:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = environment(product.var, SONDER=product.address, PATH=programs, TMPDIR=str(product.var.parent))
    walked = subprocess.run(
        ["scripts/readme_walk.sh"], cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert walked.returncode == 0, walked.stdout + walked.stderr
    return walked.stdout


def another_key(var: Path) -> str:
    made = manage(var, "create_api_key", "acme", "--source", "unknown", "--scopes", "read", "--json")
    return str(json.loads(made.stdout)["key"])


def admitted(output: str) -> tuple[int, list[int]]:
    """How many tasks the walk asked for while the lesson was in quarantine, and which of them were handed it."""
    (found,) = re.findall(r"^Of (\d+) tasks, it was handed out for number ([\d ]+)\.$", output, re.MULTILINE)
    return int(found[0]), [int(number) for number in found[1].split()]


def test_it_prints_what_the_readme_shows(walk: Walk) -> None:
    shown = re.findall(r"^```text\n(.*?)^```$", README.split("## A walk")[1], re.MULTILINE | re.DOTALL)
    assert len(shown) == 5
    wanted = ".*".join(re.escape(block).replace(re.escape("..."), ".+") for block in shown)
    assert re.search(wanted, walk.output, re.DOTALL), walk.output


def test_five_failures_quarantine_the_lesson_and_a_win_brings_it_back(walk: Walk) -> None:
    events = walk.get(f"/api/v1/lessons/{walk.lesson()['id']}/history/")["results"]
    assert [event["kind"] for event in reversed(events)] == ["quarantined", "probation_opened", "rehabilitated"]
    assert events[2]["evidence"]["losses"] == 5
    assert all(gate["passed"] for gate in events[2]["evidence"]["gates"])
    assert walk.lesson()["state"] == "active"


def test_retrieval_leaves_the_quarantined_lesson_out_and_says_why(walk: Walk) -> None:
    assert "\nhanded out: []\n" in walk.output
    assert "\nquarantined: Wrap every database call in a bare `except:`" in walk.output


def test_probation_lets_it_through_on_some_tasks_only(walk: Walk) -> None:
    asked, let_through = admitted(walk.output)
    assert asked >= 40
    assert 1 <= len(let_through) < asked / 2


def test_what_was_printed_is_what_was_recorded(walk: Walk) -> None:
    """Five tasks before quarantine, the asked ones during it, one more on probation, and one after the win."""
    asked, let_through = admitted(walk.output)
    recorded = list(reversed(walk.get("/api/v1/interactions/?page_size=200")["results"]))
    handed_out = [bool(interaction["retrieved_context"]) for interaction in recorded]
    during = [number in let_through for number in range(1, asked + 1)]
    assert handed_out == [True] * 5 + during + [True, True]


def test_the_started_product_says_that_it_is_ready(walk: Walk) -> None:
    assert walk.get("/readyz")["status"] == "ok"
