"""The suite of reliability counts what its tests told, and nothing that did not run passes for met."""

import re
from pathlib import Path

import pytest

from evaluation.catalogue import COMMITTED, read
from evaluation.reliability import playing
from evaluation.reliability.playing import Played, _played, _results
from evaluation.reliability.run import evaluate
from evaluation.reliability.suite import FULL, SUITE, Row, Run
from memory.errors import Invalid

ROOT = Path(__file__).resolve().parents[2]
ROWS = [row for run in SUITE for row in run.rows]
ROW = Row(key="k", what="a kill", counted="kills", unit="kills", least=20, tests=("tests/a.py", "tests/b.py::test_b"))
SAID = """
PASSED tests/a.py::test_one
PASSED tests/a.py::test_two
PASSED tests/b.py::test_b[0]
PASSED tests/b.py::test_beside
1 passed, and PASSED tests/c.py
"""
CLEAN = {"kills": 20, "lost": 0, "twice": 0, "wrong": 0}


def played(said: str = SAID, **figures: float) -> Played:
    return _played(ROW, 1, _results(said), CLEAN | figures)


@pytest.mark.parametrize("test", [test for row in ROWS for test in row.tests])
def test_every_test_that_the_suite_names_is_there(test: str) -> None:
    path, _, function = test.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^def {function or 'test_'}", text, re.MULTILINE)


def test_a_row_is_met_when_its_own_tests_passed_and_told_that_nothing_was_wrong() -> None:
    row = played()
    assert (row.passed, row.failed, row.faults, row.counted, row.met) == (3, 0, 0, 20, True)


@pytest.mark.parametrize("figures", [{"kills": 19}, {"lost": 1}, {"twice": 1}, {"wrong": 1}])
def test_a_row_with_a_fault_or_with_too_few_of_them_is_not(figures: dict[str, float]) -> None:
    assert not played(**figures).met


@pytest.mark.parametrize(
    "said", ["", SAID.replace("PASSED tests/b.py::test_b[0]", ""), SAID.replace("PASSED", "FAILED", 1)]
)
def test_a_row_whose_tests_failed_or_did_not_run_is_not(said: str) -> None:
    row = played(said)
    assert row.failed > 0
    assert not row.met


def test_a_row_whose_tests_told_nothing_has_no_figure() -> None:
    row = _played(ROW, 1, _results(SAID), {})
    assert (row.faults, row.met) == (None, False)


def test_an_installation_without_tests_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "ROOT", tmp_path)
    with pytest.raises(Invalid, match="Use a checkout of the source"):
        evaluate({}, lambda done, total, what: None)


def test_a_report_holds_each_row_against_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(run: Run) -> list[Played]:
        told = {"kills": 200, "outcomes": 10_000, "rows": 500, "erased": 1, "lost": run.rows[0].key == "redis"}
        return [Played(row=row, passed=50, failed=0, figures=told) for row in run.rows]

    monkeypatch.setattr("evaluation.reliability.run.play", play)
    report = evaluate({}, lambda done, total, what: None)
    missed = [figure.key for figure in report.figures if not figure.met]
    assert missed == ["reliability.redis", "reliability.postgresql", "reliability.clients"]
    assert report.answer.startswith("3 of 8 rows do not meet their bar")
    assert all(len(row) == len(table.columns) for table in report.tables for row in table.rows)


def test_the_committed_report_was_played_in_full() -> None:
    report = read("reliability", COMMITTED)
    assert report is not None
    assert {name: report.parameters[name] for name in FULL} == FULL
    assert len(report.figures) == len(ROWS)
    assert all(figure.met for figure in report.figures)
