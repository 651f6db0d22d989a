"""A report is the same after it was kept, and reads as a page."""

import json
from pathlib import Path

from evaluation.catalogue import read, save
from evaluation.report import Figure, Plot, Report, Series, Table, from_json, markdown, number

REPORT = Report(
    name="trust",
    title="Trust",
    question="Are harmful lessons found?",
    answer="44% of what an oracle could.",
    command="manage.py evaluate trust",
    made_at="2026-11-30T10:00:00+00:00",
    took_s=12.5,
    parameters={"seeds": 10},
    figures=(
        Figure(key="gain", label="Gain", value=44.2, low=36.0, high=51.0, unit="%", bar="at least 40%", met=True),
        Figure(key="none", label="Release", value=None, bar="under 10", met=False),
    ),
    how="In a simulated world.",
    limits=("A simulated world is not yours.",),
    tables=(Table(title="Policies", columns=("policy", "gain"), rows=(("trial", 44.2), ("reference", None))),),
    plots=(
        Plot(
            title="Success",
            kind="lines",
            x_label="interactions",
            y_label="success",
            series=(Series(label="trial", x=(0, 1), y=(0.5, 0.6)),),
            marks=((0.5, "here"),),
        ),
    ),
)


def test_a_kept_report_is_read_back_as_it_was(tmp_path: Path) -> None:
    save(REPORT, tmp_path)
    assert read("trust", tmp_path) == REPORT
    assert from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT


def test_what_is_no_report_is_no_report(tmp_path: Path) -> None:
    assert read("trust", tmp_path) is None
    for text in ("", "[]", "{}", '{"name": "trust"}'):
        (tmp_path / "trust.json").write_text(text)
        assert read("trust", tmp_path) is None


def test_the_page_has_every_figure_its_interval_its_bar_and_what_it_does_not_show() -> None:
    page = markdown(REPORT)
    assert "| Gain | 44.2% | [36, 51] | at least 40% | yes |" in page
    assert "| Release | none |  | under 10 | **no** |" in page
    assert "| reference | none |" in page
    assert "* A simulated world is not yours." in page


def test_numbers_keep_three_digits_and_say_their_unit() -> None:
    told = [
        number(value, unit) for value, unit in ((0.035, ""), (0.00012, ""), (81.234, "%"), (1234.5, "ms"), (20_000, ""))
    ]
    assert told == ["0.035", "1.2e-04", "81.2%", "1,234 ms", "20,000"]
