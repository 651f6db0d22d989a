"""Plays the tests of a run and collects what they counted."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.reliability.suite import Row, Run, settings
from memory.errors import Invalid

ROOT: Final = Path(__file__).resolve().parents[2]
LAST_LINES: Final = 40  # of what failed tests said
RESULT: Final = re.compile(r"^(PASSED|FAILED|ERROR) (tests/\S+)", re.MULTILINE)
REPEATING: Final = "evaluation.reliability.repeating"
WRONG: Final = ("lost", "twice", "wrong")


@dataclass(frozen=True, kw_only=True)
class Played:
    """What became of one row."""

    row: Row
    passed: int  # tests, repetitions among them
    failed: int  # failures and errors, or what did not run
    figures: Mapping[str, float]  # told by the tests; empty where they failed before

    @property
    def counted(self) -> float:
        return self.passed if self.row.counted == "passed" else self.figures.get(self.row.counted, 0)

    @property
    def faults(self) -> float | None:
        """Everything lost, counted twice or otherwise wrong; None where nothing was counted."""
        if self.row.counted == "passed":
            return self.failed
        return sum(self.figures.get(name, 0) for name in WRONG) if self.figures else None

    @property
    def met(self) -> bool:
        return self.failed == 0 and self.faults == 0 and self.counted >= self.row.least


def play(run: Run) -> list[Played]:
    """Each row of the run. Raises Invalid where the tests are not installed."""
    if not (ROOT / "tests" / "system").is_dir():
        raise Invalid.field("tests", "This installation comes without them. Use a checkout of the source.")
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures"
        results = _results(_pytest(run, figures))
        told = _told(figures)
    return [_played(row, run.rounds, results, told.get(row.key, {})) for row in run.rows]


def _played(row: Row, rounds: int, results: list[tuple[bool, str]], figures: Mapping[str, float]) -> Played:
    found = [[passed for passed, name in results if _is(name, test)] for test in row.tests]
    failed = sum(max(len(each), rounds) - sum(each) for each in found)  # a test that is missing did not pass
    return Played(row=row, passed=sum(map(sum, found)), failed=failed, figures=figures)


def _is(name: str, test: str) -> bool:
    return name == test or name.startswith((f"{test}::", f"{test}["))


def _pytest(run: Run, figures: Path) -> str:
    """What it said."""
    own = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    asked = {"RELIABILITY_FIGURES": str(figures), "REPEAT": str(run.rounds), **settings(run)}
    tests = [test for row in run.rows for test in row.tests]
    options = ["-q", "-rA", "-p", "no:cacheprovider", *(["-p", REPEATING] if run.rounds > 1 else [])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, env=own | asked,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.stderr.write("\n".join(done.stdout.splitlines()[-LAST_LINES:]) + f"\n{done.stderr}\n")
    return done.stdout


def _results(said: str) -> list[tuple[bool, str]]:
    """Whether it passed, and its name, of each test in pytest's summary."""
    return [(word == "PASSED", name) for word, name in RESULT.findall(said)]


def _told(file: Path) -> dict[str, dict[str, float]]:
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {line.pop("row"): line for line in lines}
