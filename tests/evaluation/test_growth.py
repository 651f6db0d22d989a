"""What the measurement of growth computes from what it saw."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.growth import bounds, parts
from evaluation.growth.arithmetic import PAGE, Line, cell, duration, page_with_tables
from evaluation.growth.comparing import grown, power, sums
from evaluation.growth.slope import averaged, slope
from evaluation.performance.forms import fields
from evaluation.report import Figure, Report, Table
from memory.errors import Invalid

ROOT = Path(__file__).resolve().parents[2]


def cost(seconds: float, again: float | None = None) -> dict[str, Any]:
    return {"seconds": seconds, "again": again}


def report(name: str, title: str = "What it bears") -> Report:
    return Report(
        name=name, title=title, question="How much?", answer="So much.", command="make growth", made_at="2026-01-02",
        took_s=3.0, parameters={"cores": 2}, how="By looking.", limits=("Little.",),
        figures=(Figure(key=f"{name}.errors", label="errors", value=0, bar="0", met=True),),
    )  # fmt: skip


class TestSlope:
    def test_of_points_on_a_line_is_the_line_without_width(self) -> None:
        found = slope([0, 10, 20, 30], [5, 7, 9, 11])
        assert (found.value, found.low, found.high, found.start) == pytest.approx((0.2, 0.2, 0.2, 5))

    def test_of_scattered_points_has_students_interval(self) -> None:
        """Worked by hand: residuals 1, -2, 0, 2, -1 around y = x leave 10, over 3 and a spread of 10."""
        found = slope([0, 1, 2, 3, 4], [1, -1, 2, 5, 3])
        half = 3.182 * (10 / 3 / 10) ** 0.5
        assert (found.value, found.low, found.high) == pytest.approx((1, 1 - half, 1 + half))

    def test_can_be_told_for_other_steps(self) -> None:
        tenfold = slope([0, 1, 2, 3, 4], [1, -1, 2, 5, 3]).scaled(10)
        assert tenfold.value == pytest.approx(10)
        assert tenfold.high - tenfold.low == pytest.approx(2 * 10 * 3.182 * (1 / 3) ** 0.5)

    @pytest.mark.parametrize("places", [[], [3], [3, 3]])
    def test_needs_two_places(self, places: list[float]) -> None:
        with pytest.raises(ValueError, match="two places"):
            slope(places, places)

    def test_is_laid_through_the_means_of_stretches(self) -> None:
        assert averaged([0, 10, 20, 65, 70], [1, 2, 3, 10, 20], 60) == ([10, 67.5], [2, 15])


class TestBounds:
    def test_a_number_is_as_usual_or_as_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SOAK_MINUTES", raising=False)
        assert bounds.number("SOAK_MINUTES") == 30
        monkeypatch.setenv("SOAK_MINUTES", "5")
        assert bounds.number("SOAK_MINUTES") == 5

    def test_a_list_comes_in_ascending_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LOAD_AGENTS", "8,1,8")
        assert bounds.numbers("LOAD_AGENTS") == (1, 8)

    @pytest.mark.parametrize("said", ["", "0", "-3", "2.5", "many", "999999"])
    def test_what_is_out_of_bounds_is_refused_by_name(self, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOAK_MINUTES", said)
        with pytest.raises(Invalid) as refusal:
            bounds.number("SOAK_MINUTES")
        assert refusal.value.errors == {"SOAK_MINUTES": ["use whole numbers from 2 to 1,440."]}

    def test_every_variable_is_documented_with_what_is_usual(self) -> None:
        page = (ROOT / "docs/growth.md").read_text(encoding="utf-8")
        usual = {name: f"{bound.usual:,}" for name, bound in bounds.NUMBERS.items()}
        usual |= {name: ", ".join(f"{each:,}" for each in bound[0]) for name, bound in bounds.LISTS.items()}
        assert dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d, ]+) \|", page, re.MULTILINE)) == usual


class TestComparing:
    def test_the_power_is_that_of_the_last_two_sizes(self) -> None:
        assert power([1_000, 10_000, 100_000], [9.0, 2.0, 20.0]) == pytest.approx(1)
        assert power([10_000, 100_000], [2.0, 200.0]) == pytest.approx(2)
        assert power([10_000, 100_000], [2.0, 2.0]) == 0

    def test_one_size_or_nothing_measured_has_none(self) -> None:
        assert power([1_000], [3.0]) == 0
        assert power([1_000, 2_000], [0.0, 3.0]) == 0

    def test_grown_is_what_takes_twice_as_long_and_noticeably_longer(self) -> None:
        few = {"page": cost(0.1), "quick": cost(0.001), "job": cost(9.0, 0.1), "same": cost(0.1)}
        many = {"page": cost(0.3), "quick": cost(0.009), "job": cost(9.0, 0.5), "same": cost(0.15)}
        assert grown(few, many) == ["page", "job"]

    def test_a_table_takes_what_it_and_its_indexes_take(self) -> None:
        assert sums({"own": 100, "long": 20, "indexes": {"a": 5, "b": 6}}) == {"table": 120, "indexes": 11}
        assert sums({}) == {"table": 0, "indexes": 0}


class TestParts:
    def test_one_part_made_anew_leaves_the_others(self, tmp_path: Path) -> None:
        for each in (report("soak"), report("load"), report("soak", "Another time")):
            parts.keep(each, tmp_path)
        kept = parts.read(tmp_path)
        assert list(kept) == ["load", "soak"]
        assert kept == {"load": report("load"), "soak": report("soak", "Another time")}

    def test_the_page_has_every_part_below_its_own_heading(self, tmp_path: Path) -> None:
        parts.keep(report("load"), tmp_path)
        parts.keep(report("soak", "Soak"), tmp_path)
        page = (tmp_path / parts.PAGE).read_text(encoding="utf-8")
        headings = re.findall(r"^(#+) (.*)", page, re.MULTILINE)
        assert headings[:3] == [("#", "Growth"), ("##", "What it bears"), ("###", "How it was measured")]
        assert ("##", "Soak") in headings

    def test_the_committed_page_is_the_committed_record(self) -> None:
        kept = parts.read(parts.REPORTS)
        assert set(kept) == set(parts.PARTS)
        assert (parts.REPORTS / parts.PAGE).read_text(encoding="utf-8") == parts.page(kept)


class TestForms:
    PAGE = (
        '<form method="post" action="/review/decide/"><input type="hidden" name="csrfmiddlewaretoken" value="t">'
        '<input type="hidden" name="decision" value="approve"><input type="hidden" name="next" value="/a?b=1&amp;c=2">'
        '</form>\n<form action="/review/decide/"><input type="hidden" name="decision" value="reject"></form>'
    )

    def test_a_reader_sends_what_the_form_of_the_verdict_holds(self) -> None:
        assert fields(self.PAGE, "approve") == {"decision": "approve", "next": "/a?b=1&c=2"}
        assert fields(self.PAGE, "reject") == {"decision": "reject"}

    def test_a_verdict_that_is_not_offered_cannot_be_sent(self) -> None:
        with pytest.raises(LookupError, match="uphold"):
            fields(self.PAGE, "uphold")


class TestArithmetic:
    def test_a_line_is_carried_on_with_its_power(self) -> None:
        assert Line(what="", unit="GB", each=2e-6).at(10**6) == "2 GB"
        square = Line(what="", unit="seconds", each=0.001, power=2, base=1_000)  # a second for the first thousand
        assert [square.at(n) for n in (1_000, 10_000, 1_000_000)] == ["1 s", "100 s", "12 days"]

    @pytest.mark.parametrize(
        ("seconds", "told"),
        [(0.02, "0.02 s"), (119, "120 s"), (121, "2 minutes"), (7300, "2 hours"), (1e7, "120 days")],
    )
    def test_a_time_is_told_in_the_largest_unit_of_which_there_are_two(self, seconds: float, told: str) -> None:
        assert duration(seconds) == told

    def test_a_cell_is_found_by_the_names_of_its_row_and_column(self) -> None:
        table = Table(title="Upkeep", columns=("lessons", "backup, s"), rows=((1_000, 1.5), (10_000, 9)))
        made = replace(report("sizes"), tables=(table,))
        assert cell(made, "Upkeep", 10_000, "backup, s") == 9
        with pytest.raises(KeyError):
            cell(made, "Upkeep", 5, "backup, s")

    def test_the_committed_page_has_the_arithmetic_of_the_committed_record(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        assert page_with_tables(page, parts.read(parts.REPORTS)) == page
