"""Every chart, with ordinary, empty and extreme data: well formed, readable, escaped, and equal to its table."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.rules.description import percent
from memory.rules.outlook import odds_in_words
from review.charts import (
    Axes,
    Bin,
    Curve,
    Estimate,
    Mark,
    Moment,
    OddsRow,
    Overlap,
    Part,
    Serving,
    Span,
    Thresholds,
    Timeline,
    binned,
    curves,
    curves_table,
    forest,
    forest_table,
    interval_mini,
    interval_row,
    interval_table,
    odds_line,
    odds_table,
    overlap_bar,
    overlap_table,
    reliability,
    reliability_table,
    score_bar,
    score_table,
    sparkline,
    sparkline_table,
    timeline,
    timeline_table,
    top_of,
)
from review.charts.drawing import MEDIUM, NARROW, WIDE, coordinate, fit, legible, width_of

STYLES = (Path(__file__).resolve().parents[2] / "static/review/charts.css").read_text(encoding="utf-8")
NOW = datetime(2025, 12, 12, 15, tzinfo=UTC)
HOSTILE = (
    "<script>alert('x')</script>&amp;\x00\x0b\u202egnp \u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f467 "
    + "long" * 500
)
MILLION = 10**6
TITLE = "Loss rate"

WITH = Estimate(label="With it", losses=14, n=40, expected=0.18)
WITHOUT = Estimate(label="Left out by a coin", losses=2, n=13, expected=0.24, series="second")
UNSERVED = Estimate(label="week of 1 Dec", losses=0, n=0)
EXTREME = [
    Estimate(label=HOSTILE, losses=0, n=40, expected=0.0),
    Estimate(label="", losses=40, n=40, expected=1.0),
    Estimate(label="\U0001f469\u200d\U0001f467" * 90, losses=3, n=MILLION, expected=1e-6),
    Estimate(label="\u65e5\u672c" * 90, losses=MILLION, n=MILLION, expected=0.5, series="second"),
    UNSERVED,
]
LIFE = Timeline(
    servings=[Serving(at=NOW - timedelta(days=day), lost=day % 3 == 0) for day in range(1, 30)],
    until=NOW,
    marks=[Mark(at=NOW - timedelta(days=30), label="v1"), Mark(at=NOW - timedelta(days=12), label="v2")],
    spans=[
        Span(kind="quarantine", start=NOW - timedelta(days=9)),
        Span(kind="probation", start=NOW - timedelta(days=8), end=NOW - timedelta(days=2)),
    ],
)
CROWDED = Timeline(
    servings=[Serving(at=NOW - timedelta(minutes=i), lost=i % 7 == 0) for i in range(5000)],
    until=NOW,
    marks=[Mark(at=NOW - timedelta(minutes=i), label=HOSTILE) for i in range(5)],
    spans=[Span(kind="quarantine", start=NOW - timedelta(days=900), end=NOW - timedelta(days=899))],
)
LEDGER = [
    OddsRow(label=f"{i} Dec", lost=lost, odds=odds)
    for i, (lost, odds) in enumerate([(True, 2.14), (True, 4.6), (False, 3.3), (True, 14.8), (True, 317.6)], 1)
]
BEYOND = [OddsRow(label=HOSTILE, lost=i % 5 > 0, odds=math.exp(1.09 * i)) for i in range(64)]
PARTS = [Part(name="Meaning", value=0.0164), Part(name="Words", value=0.0159), Part(name="Record", value=-0.004)]
SHARED = Overlap(only_a=12, both=5, only_b=30)
BINS = [Bin(predicted=0.05, hits=80, n=1240), Bin(predicted=0.45, hits=3, n=7), Bin(predicted=0.95, hits=9, n=9)]
WEEKS = [Moment.rate(f"week {i}", i % 4 + 2, 30) if i != 5 else Moment.rate("week 5", 0, 0) for i in range(12)]
AXES = Axes(x="interactions", y="success")
GAINS = [
    Curve(label="the whole loop", x=(0, 500, 1000), y=(0.5, 0.61, 0.7), low=(0.4, 0.55, 0.6), high=(0.6, 0.7, 0.8)),
    Curve(label="retrieval alone", x=(0, 500, 1000), y=(0.5, 0.52, 0.51)),
]
WILD = [
    Curve(label=HOSTILE, x=(-5.0, 1e12), y=(-1e9, 1e-9), low=(-2e9, -1.0), high=(0.0, 1.0)),
    Curve(label="one", x=(3.0,), y=(0.0,)),
    Curve(label="none", x=(), y=()),
]

GALLERY = {
    "interval": interval_row("a", WITH, title=TITLE),
    "interval unserved": interval_row("b", UNSERVED, title=TITLE),
    **{f"interval extreme {i}": interval_row(f"c{i}", e, title=HOSTILE) for i, e in enumerate(EXTREME)},
    **{f"mini {i}": interval_mini(f"d{i}", e, title=TITLE) for i, e in enumerate([WITH, *EXTREME])},
    "forest": forest("e", [WITH, WITHOUT, UNSERVED], title=TITLE),
    "forest of one": forest("f", [WITHOUT], title=TITLE),
    "forest extreme": forest("g", EXTREME, title=HOSTILE),
    "timeline": timeline("h", LIFE, title=TITLE),
    "timeline of one": timeline("i", Timeline(servings=[Serving(at=NOW, lost=True)], until=NOW), title=TITLE),
    "timeline crowded": timeline("j", CROWDED, title=HOSTILE),
    "odds": odds_line("k", LEDGER, title=TITLE),
    "odds of one": odds_line("l", LEDGER[:1], title=TITLE),
    "odds beyond": odds_line("m", BEYOND, title=HOSTILE, thresholds=Thresholds(trial=2, release=3, quarantine=5000)),
    "score": score_bar("n", PARTS, title=TITLE),
    "score of nothing": score_bar("o", [Part(name="Nothing", value=0.0)], title=TITLE),
    "score of many": score_bar("p", [Part(name=HOSTILE, value=10.0**i) for i in range(-6, 7)], title=HOSTILE, top=1e9),
    "score below zero": score_bar("q", [Part(name="Record", value=-1.0)], title=TITLE),
    "overlap": overlap_bar("r", SHARED, title=TITLE),
    "overlap extreme": overlap_bar("s", Overlap(only_a=0, both=1, only_b=10**12, a=HOSTILE, b=HOSTILE), title=HOSTILE),
    "reliability": reliability("t", BINS, title=TITLE),
    "reliability of ten": reliability(
        "u", [Bin(predicted=i / 10, hits=MILLION // 2, n=MILLION) for i in range(10)], title=TITLE, observed=HOSTILE
    ),
    "sparkline": sparkline("v", WEEKS, title=TITLE, form="rate"),
    "sparkline of one": sparkline("w", WEEKS[:1], title=TITLE, form="rate"),
    "sparkline of counts": sparkline("x", [Moment(label=HOSTILE, value=10.0**i) for i in range(13)], title=HOSTILE),
    "curves": curves("z", GAINS, AXES, title=TITLE),
    "curves wild": curves(
        "za", WILD, Axes(x=HOSTILE, y=HOSTILE, marks=((2.0, HOSTILE), (1e12, HOSTILE))), title=HOSTILE
    ),
    "curves stepped": curves(
        "zb", GAINS, Axes(x="score", y="lessons", marks=((400, "gate"),), stepped=True), title=TITLE
    ),
    "sparkline of zeros": sparkline("y", [Moment(label="a", value=0), Moment(label="b", value=0)], title=TITLE),
}
EMPTY = {
    "forest": (forest("a", [], title=TITLE), "No servings to compare yet."),
    "timeline": (timeline("b", Timeline(servings=[], until=NOW), title=TITLE), "Nothing has happened to it yet."),
    "odds": (odds_line("c", [], title=TITLE), "The ledger has no rows yet."),
    "score": (score_bar("d", [], title=TITLE), "The score has no parts."),
    "overlap": (overlap_bar("e", Overlap(only_a=0, both=0, only_b=0), title=TITLE), "Neither was served yet."),
    "reliability": (reliability("f", [Bin(predicted=0.5, hits=0, n=0)], title=TITLE), "No cases to compare yet."),
    "curves": (curves("h", [], AXES, title=TITLE), "Nothing measured yet."),
    "sparkline": (sparkline("g", [Moment(label="a", value=None)], title=TITLE), "Nothing measured yet."),
}
CHARTS = {**GALLERY, **{f"empty {name}": chart for name, (chart, _) in EMPTY.items()}}


def frames(chart: str) -> list[ET.Element]:
    """The SVG elements of a chart: one, or the narrow and the wide form. Fails if the chart is not well formed."""
    root = ET.fromstring(chart)
    return [root] if root.tag == "svg" else list(root)


def by_class(svg: ET.Element, *classes: str) -> Iterator[ET.Element]:
    return (e for e in svg.iter() if set(classes) <= set(e.get("class", "").split()))


def numbers(element: ET.Element, *names: str) -> list[float]:
    return [float(element.get(name, "nan")) for name in names]


def texts(svg: ET.Element) -> list[str]:
    return [e.text or "" for e in svg.iter("text")]


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
class TestEveryChart:
    def test_is_well_formed_and_has_only_finite_numbers(self, chart: str) -> None:
        for svg in frames(chart):
            for element in svg.iter():
                for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"):
                    if name in element.attrib:
                        assert math.isfinite(float(element.attrib[name]))
                for pair in element.get("points", "0,0").split():
                    assert all(math.isfinite(float(number)) for number in pair.split(","))

    def test_is_an_image_with_a_name_and_a_conclusion(self, chart: str) -> None:
        for svg in frames(chart):
            assert svg.get("role") == "img"
            title, desc = svg[0], svg[1]
            assert (title.tag, desc.tag) == ("title", "desc")
            assert svg.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
            assert title.text
            assert desc.text

    def test_has_unique_ids(self, chart: str) -> None:
        ids = re.findall(r'\bid="([^"]+)"', chart)
        assert len(ids) == len(set(ids)) > 0

    def test_carries_no_script_and_no_style(self, chart: str) -> None:
        elements = {e.tag for svg in frames(chart) for e in svg.iter()}
        assert elements <= {"svg", "title", "desc", "text", "line", "rect", "circle", "polygon", "polyline"}
        attributes = {name for svg in frames(chart) for e in svg.iter() for name in e.attrib}
        assert not {name for name in attributes if name in ("style", "href", "fill", "stroke") or name.startswith("on")}
        assert "<script" not in chart

    def test_is_drawn_by_classes_that_the_stylesheet_knows(self, chart: str) -> None:
        used = {css for svg in frames(chart) for e in svg.iter() for css in e.get("class", "").split()}
        known = set(re.findall(r"\.([a-z][\w-]*)", STYLES))
        kinds = {css for css in used if css.startswith("chart-") and not re.search(r"\d", css)}
        assert used - kinds - {"threshold-on-trial", "threshold-freed"} <= known

    def test_keeps_its_shapes_and_its_text_inside_its_frame(self, chart: str) -> None:
        for svg in frames(chart):
            width, height = numbers(svg, "width", "height")
            assert svg.get("viewBox") == f"0 0 {width:g} {height:g}"
            for element in svg.iter("text"):
                x, y = numbers(element, "x", "y")
                size = width_of(element.text or "")
                start = x - size * {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "")]
                assert 12 <= y <= height
                assert start >= -4
                assert start + size <= width + 4
            for element in by_class(svg, "point"):
                if element.tag == "circle":
                    assert 0 <= float(element.get("cx", "")) <= width
                    assert 0 <= float(element.get("cy", "")) <= height

    def test_comes_in_a_form_that_fits_a_phone(self, chart: str) -> None:
        widths = [float(svg.get("width", "")) for svg in frames(chart)]
        assert widths[0] <= NARROW
        assert set(widths[1:]) <= {MEDIUM, WIDE}


class TestText:
    def test_is_never_smaller_than_12_px(self) -> None:
        sizes = [float(size) for size in re.findall(r"font-size:\s*([\d.]+)px", STYLES)]
        assert min(sizes) >= 12

    def test_of_others_is_escaped_and_loses_what_xml_forbids(self) -> None:
        labels = [label for label in texts(frames(GALLERY["forest extreme"])[1]) if label.startswith("<scr")]
        assert labels
        assert labels[0].endswith("\u2026")
        assert legible("a\x00b\u202ec\nd") == "abc d"

    def test_that_fits_is_left_alone_and_the_rest_is_cut(self) -> None:
        assert fit("Project billing", 160) == "Project billing"
        cut = fit("long " * 100, 160)
        assert cut.endswith("\u2026")
        assert width_of(cut) <= 160

    @given(words=st.text(), width=st.floats(20, 400))
    def test_is_never_wider_than_its_room(self, words: str, width: float) -> None:
        assert width_of(fit(words, width)) <= width

    def test_that_is_a_family_is_one_emoji(self) -> None:
        assert legible("\U0001f469\u200d\U0001f467") == "\U0001f469\u200d\U0001f467"


class TestForms:
    def test_each_form_is_hidden_where_the_other_is_shown(self) -> None:
        for width in (MEDIUM, WIDE):
            rule = re.search(rf"@container \(min-width: {width}px\) {{(.*?)\n  }}", STYLES, re.DOTALL)
            assert rule is not None
            assert f".chart-below-{width} {{ display: none; }}" in rule[1]
            assert f".chart-from-{width} {{ display: block; }}" in rule[1]

    def test_a_prefix_that_is_no_id_is_refused(self) -> None:
        with pytest.raises(ValueError, match="cannot start an id"):
            interval_row('x" onload="', WITH, title=TITLE)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_what_is_no_number_is_refused(self, value: float) -> None:
        with pytest.raises(ValueError, match="cannot show"):
            coordinate(value)
        with pytest.raises(ValueError, match="cannot"):
            score_bar("a", [Part(name="Meaning", value=value)], title=TITLE)
        with pytest.raises(ValueError, match="between 0 and 1"):
            interval_row("a", Estimate(label="a", losses=1, n=2, expected=value), title=TITLE)
        with pytest.raises(ValueError, match="cannot"):
            odds_line("a", [OddsRow(label="a", lost=True, odds=value)], title=TITLE)

    def test_coordinates_are_short(self) -> None:
        assert [coordinate(value) for value in (-0.001, 0.0, 1.005, 12.5, 100.0)] == ["0", "0", "1", "12.5", "100"]

    @pytest.mark.parametrize(("chart", "sentence"), EMPTY.values(), ids=EMPTY)
    def test_an_empty_chart_is_a_sentence(self, chart: str, sentence: str) -> None:
        for svg in frames(chart):
            assert texts(svg) == [sentence]
            assert svg[1].text == sentence


def rates_of(svg: ET.Element) -> list[str]:
    """What the points of a chart of rates say, read off its axis."""
    labels = [e for e in by_class(svg, "muted") if re.fullmatch(r"[\d.]+%", e.text or "")]
    start, end = float(labels[0].get("x", "")), float(labels[2].get("x", ""))
    assert labels[0].text == "0%"
    top = float((labels[2].text or "").removesuffix("%")) / 100
    places = [float(e.get("cx", "")) for e in by_class(svg, "point") if e.tag == "circle"]
    return [percent(round((place - start) / (end - start) * top, 3)) for place in places]


class TestIntervals:
    def test_a_row_equals_its_table(self) -> None:
        ((_, lost, n, rate, plausible, expected),) = interval_table(WITH, title=TITLE).rows
        assert (lost, n, rate, plausible, expected) == ("14", "40", "35%", "22% to 51%", "18%")
        for svg in frames(GALLERY["interval"]):
            assert rates_of(svg) == [rate]
            assert {f"{rate} lost", f"n = {n}", f"expected {expected}", "22%\u201351% plausible"} <= set(texts(svg))

    def test_a_description_says_where_the_expected_rate_lies(self) -> None:
        assert frames(GALLERY["interval"])[0][1].text == (
            "14 of 40 lost, 35%; 22% to 51% is plausible. Expected was 18%, below that."
        )
        assert WITHOUT.words.endswith("Expected was 24%, within that.")
        assert Estimate(label="", losses=0, n=40, expected=0.5).words.endswith("Expected was 50%, above that.")

    def test_a_forest_equals_its_table(self) -> None:
        estimates = [WITH, Estimate(label="Project billing", losses=9, n=18, expected=0.2)]
        rows = forest_table(estimates, title=TITLE).rows
        for svg in frames(forest("a", estimates, title=TITLE)):
            assert rates_of(svg) == [row[3] for row in rows]
            assert [f"{row[1]} / {row[2]}" for row in rows] == [t for t in texts(svg) if re.fullmatch(r"\d+ / \d+", t)]
            assert [row[0] for row in rows] == [t for t in texts(svg) if t in (e.label for e in estimates)]

    def test_the_wide_forest_prints_what_is_plausible(self) -> None:
        rows = forest_table([WITH, WITHOUT], title=TITLE).rows
        shown = [t.replace("\u2013", " to ") for t in texts(frames(GALLERY["forest"])[1]) if "\u2013" in t]
        assert shown[:2] == [row[4] for row in rows]

    def test_every_interval_is_drawn(self) -> None:
        for name in ("interval", "forest", "forest extreme", "interval extreme 0", "interval extreme 3"):
            for svg in frames(GALLERY[name]):
                flat = [e for e in by_class(svg, "whisker") if e.get("y1") == e.get("y2")]
                assert len(flat) == len(list(by_class(svg, "point"))) - 2 * (name.startswith("forest"))

    def test_a_row_without_servings_has_no_point(self) -> None:
        for svg in frames(GALLERY["interval unserved"]):
            assert not list(by_class(svg, "point"))
            assert len(list(by_class(svg, "unknown"))) == 1
        assert interval_table(UNSERVED, title=TITLE).rows[0][3:] == ("no servings", "0% to 100%", "unknown")

    def test_series_differ_in_shape(self) -> None:
        for svg in frames(GALLERY["forest"]):
            assert {e.tag for e in by_class(svg, "point", "lesson")} == {"circle"}
            assert {e.tag for e in by_class(svg, "point", "second")} == {"polygon"}

    def test_an_axis_holds_every_interval_and_ends_round(self) -> None:
        assert top_of([WITH]) == pytest.approx(0.6)
        assert top_of([WITH, *EXTREME]) == 1
        assert top_of([Estimate(label="", losses=0, n=MILLION)]) == pytest.approx(4e-6)
        assert top_of([]) == 1

    @settings(max_examples=50)
    @given(
        counts=st.lists(st.tuples(st.integers(0, MILLION), st.integers(0, MILLION)), max_size=6),
        expected=st.none() | st.floats(0, 1),
    )
    def test_any_record_can_be_drawn(self, counts: list[tuple[int, int]], expected: float | None) -> None:
        estimates = [Estimate(label="a", losses=lost, n=lost + won, expected=expected) for lost, won in counts]
        for svg in frames(forest("a", estimates, title=TITLE)):
            assert "nan" not in ET.tostring(svg, encoding="unicode").lower()


class TestTheTimeline:
    def test_equals_its_table(self) -> None:
        table = timeline_table(LIFE, title=TITLE)
        assert [row[0] for row in table.rows] == sorted(row[0] for row in table.rows)
        found = [row[1] for row in table.rows]
        wide = frames(GALLERY["timeline"])[1]
        ticks = [numbers(e, "y1", "y2") for e in by_class(wide, "tick")][:-2]  # the last two explain the marks
        assert sum(end < start for start, end in ticks) == found.count("Win")
        assert sum(end > start for start, end in ticks) == found.count("Loss")
        assert {f"{found.count('Win')} wins", f"{found.count('Loss')} losses"} <= set(texts(wide))
        assert {"v1", "v2"} <= set(found) & set(texts(wide))

    def test_shows_how_long_each_span_lasted(self) -> None:
        rows = {row[1]: (row[0], row[2]) for row in timeline_table(LIFE, title=TITLE).rows}
        assert rows["Quarantined"] == ("2025-12-03 15:00", "now")
        assert rows["On probation"] == ("2025-12-04 15:00", "2025-12-10 15:00")
        wide = frames(GALLERY["timeline"])[1]
        quarantine, probation = (next(by_class(wide, f"span-{kind}")) for kind in ("quarantine", "probation"))
        day = (WIDE - 8) / 30
        lengths = [end - start for start, end in (numbers(e, "x1", "x2") for e in (quarantine, probation))]
        assert lengths == pytest.approx([9 * day, 6 * day], abs=0.02)

    def test_grows_a_tick_in_proportion_to_its_servings(self) -> None:
        twice = [Serving(at=NOW - timedelta(days=1), lost=True)] * 2
        shown = Timeline(servings=[Serving(at=NOW - timedelta(days=9), lost=True), *twice], until=NOW)
        for svg in frames(timeline("a", shown, title=TITLE)):
            heights = [end - start for start, end in (numbers(e, "y1", "y2") for e in by_class(svg, "tick", "loss"))]
            assert heights[1] == pytest.approx(2 * heights[0])
            assert "tallest: 2" in texts(svg)

    def test_says_what_happened(self) -> None:
        desc = frames(GALLERY["timeline"])[0][1].text or ""
        assert desc.startswith("29 judged servings, 9 losses, from 2025-11-12 15:00 to 2025-12-12 15:00.")
        assert "Quarantined from 2025-12-03 15:00 until now." in desc

    def test_of_one_day_is_labelled_by_the_hour(self) -> None:
        shown = Timeline(servings=[Serving(at=NOW - timedelta(hours=3), lost=False)], until=NOW)
        assert {"12:00", "15:00"} <= set(texts(frames(timeline("a", shown, title=TITLE))[0]))


class TestTheOdds:
    def test_equal_their_table(self) -> None:
        rows = odds_table(LEDGER, title=TITLE).rows
        assert rows[-1] == ("5", "5 Dec", "Loss", "318 : 1")
        for svg in frames(GALLERY["odds"]):
            ten, two_hundred = (
                float(next(by_class(svg, f"threshold-{c}")).get("y1", "")) for c in ("on-trial", "quarantined")
            )
            points = next(by_class(svg, "line")).get("points", "").split()
            heights = [float(pair.split(",")[1]) for pair in points]
            found = [10 * 20 ** ((ten - y) / (ten - two_hundred)) for y in heights]
            assert found == pytest.approx([row.odds for row in LEDGER], rel=0.01)
            assert {"318 : 1", "5 rows, 4 lost"} <= set(texts(svg))

    def test_of_a_loss_and_a_win_differ_in_shape(self) -> None:
        for svg in frames(GALLERY["odds"]):
            assert len(list(by_class(svg, "mark-loss"))) == 4 + 1  # one explains the mark
            assert {e.tag for e in by_class(svg, "mark-loss")} == {"polygon"}
            assert {e.tag for e in by_class(svg, "mark-win")} == {"circle"}

    def test_name_their_thresholds(self) -> None:
        assert {"10 on trial", "50 freed", "200 quarantined"} <= set(texts(frames(GALLERY["odds"])[0]))
        desc = frames(GALLERY["odds"])[0][1].text or ""
        assert desc.startswith("After 5 rows, 4 of them lost, the odds are 318 : 1; the highest were 318 : 1.")

    def test_beyond_a_million_stay_on_the_edge(self) -> None:
        assert odds_in_words(BEYOND[-1].odds) == "over a million"
        for svg in frames(GALLERY["odds beyond"]):
            assert "over a million : 1" in texts(svg)


def widths(svg: ET.Element, *classes: str) -> list[float]:
    """Of the segments of a bar; the small squares explain them."""
    return [float(e.get("width", "")) for css in classes for e in by_class(svg, css) if e.get("height") == "20"]


class TestBars:
    def test_a_score_equals_its_table(self) -> None:
        rows = score_table(PARTS, title=TITLE).rows
        assert rows[-1] == ("Score", "0.0283")
        for svg in frames(GALLERY["score"]):
            found = widths(svg, "part-1", "part-2", "part-3")
            whole = float(svg.get("width", ""))
            assert [(w + 2) / whole for w in found] == pytest.approx(
                [0.0164 / 0.0363, 0.0159 / 0.0363, 0.004 / 0.0363], abs=1e-3
            )
            assert {cell for row in rows for cell in row} <= set(texts(svg))

    def test_a_part_below_zero_lies_left_of_zero(self) -> None:
        for svg in frames(GALLERY["score"]):
            zero = float(next(by_class(svg, "axis")).get("x1", ""))
            below, above = (float(next(by_class(svg, css)).get("x", "")) for css in ("part-3", "part-1"))
            assert below < zero <= above

    def test_scores_can_share_an_axis(self) -> None:
        for svg in frames(score_bar("a", PARTS[:1], title=TITLE, top=0.0328)):
            assert widths(svg, "part-1")[0] + 2 == pytest.approx(float(svg.get("width", "")) / 2, abs=0.01)

    def test_an_overlap_equals_its_table(self) -> None:
        rows = overlap_table(SHARED, title=TITLE).rows
        assert rows == (("only A", "12", "26%"), ("both", "5", "11%"), ("only B", "30", "64%"))
        for svg in frames(GALLERY["overlap"]):
            whole = float(svg.get("width", ""))
            found = [percent((w + 2) / whole) for w in widths(svg, "only-a", "both", "only-b")]
            assert found == [row[2] for row in rows]
            assert {f"{n} \u00b7 {share}" for _, n, share in rows} <= set(texts(svg))
            assert svg[1].text == "Served together in 5 of 47 interactions: only A 12, both 5, only B 30."

    def test_what_is_not_nothing_can_be_seen(self) -> None:
        for svg in frames(GALLERY["overlap extreme"]):
            assert widths(svg, "only-a", "both")[:2] == [0.0, 1.0]


class TestReliability:
    def test_equals_its_table(self) -> None:
        rows = reliability_table(BINS, title=TITLE).rows
        assert rows[1] == ("45%", "43%", "15% to 75%", "3", "7", "few")
        for svg in frames(GALLERY["reliability"]):
            diagonal = numbers(next(by_class(svg, "diagonal")), "x1", "y1", "x2", "y2")
            x0, y0, x1, y1 = diagonal
            points = [numbers(e, "cx", "cy") for e in by_class(svg, "point")][: len(BINS)]
            found = [
                (percent(round((x - x0) / (x1 - x0), 3)), percent(round((y - y0) / (y1 - y0), 3))) for x, y in points
            ]
            assert found == [row[:2] for row in rows]
            assert {"1.2k", "7", "9"} <= set(texts(svg))

    def test_a_bin_with_few_cases_is_hollow_and_explained(self) -> None:
        for svg in frames(GALLERY["reliability"]):
            assert len(list(by_class(svg, "hollow"))) == 2 + 1
            assert "under 10 cases" in texts(svg)

    def test_every_bin_has_its_interval(self) -> None:
        for svg in frames(GALLERY["reliability"]):
            assert len([e for e in by_class(svg, "whisker") if e.get("x1") == e.get("x2")]) == len(BINS)

    def test_empty_bins_are_absent(self) -> None:
        bins = [*BINS, Bin(predicted=0.6, hits=0, n=0)]
        assert reliability("a", bins, title=TITLE) == reliability("a", BINS, title=TITLE)
        assert reliability_table(bins, title=TITLE) == reliability_table(BINS, title=TITLE)

    def test_says_which_predictions_are_off(self) -> None:
        off = reliability("a", [Bin(predicted=0.9, hits=10, n=100), Bin(predicted=0.1, hits=10, n=100)], title=TITLE)
        assert frames(off)[0][1].text == (
            "In 1 of 2 bins the prediction is plausible, n = 200. Predicted 90%, happened 10% (n = 100)."
        )

    def test_cases_are_put_in_bins(self) -> None:
        assert binned([(0.0, False), (0.19, True), (0.95, True), (1.0, True)], bins=5) == [
            Bin(predicted=0.095, hits=1, n=2),
            Bin(predicted=0.975, hits=2, n=2),
        ]

    def test_only_five_to_ten_bins_and_probabilities_are_taken(self) -> None:
        with pytest.raises(ValueError, match="5 to 10 bins"):
            binned([], bins=11)
        with pytest.raises(ValueError, match="between 0 and 1"):
            binned([(1.5, True)])


class TestSparkline:
    def test_equals_its_table(self) -> None:
        rows = sparkline_table(WEEKS, title=TITLE, form="rate").rows
        svg = frames(GALLERY["sparkline"])[0]
        assert texts(svg) == [rows[-1][1]]
        measured = [row for row in rows if row[1] != "none"]
        assert sum(len(e.get("points", "").split()) for e in by_class(svg, "line")) == len(measured) == 11

    def test_leaves_a_gap_where_nothing_was_measured(self) -> None:
        assert len(list(by_class(frames(GALLERY["sparkline"])[0], "line"))) == 2
        assert sparkline_table(WEEKS, title=TITLE, form="rate").rows[5] == ("week 5", "none", "", "0")

    def test_of_rates_has_its_band(self) -> None:
        assert len(list(by_class(frames(GALLERY["sparkline"])[0], "band"))) == 2

    def test_starts_at_zero(self) -> None:
        svg = frames(sparkline("a", [Moment(label="a", value=5), Moment(label="b", value=10)], title=TITLE))[0]
        base = float(next(by_class(svg, "grid")).get("y1", ""))
        first, last = (float(p.split(",")[1]) for p in next(by_class(svg, "line")).get("points", "").split())
        assert base - last == pytest.approx(2 * (base - first), abs=0.02)

    def test_says_where_it_came_from_and_went(self) -> None:
        moments = [
            Moment(label="Monday", value=3),
            Moment(label="Tuesday", value=None),
            Moment(label="Wednesday", value=1200),
        ]
        svg = frames(sparkline("a", moments, title=TITLE))[0]
        assert svg[1].text == "Up from 3 (Monday) to 1,200 (Wednesday); 2 of 3 periods measured."
        assert texts(svg) == ["1,200"]


class TestCurves:
    def test_the_table_has_every_point_and_what_is_plausible(self) -> None:
        rows = curves_table(GAINS, AXES, title=TITLE).rows
        assert rows[1] == ("the whole loop", "500", "0.61", "0.55 to 0.7")
        assert [row[0] for row in rows] == ["the whole loop"] * 3 + ["retrieval alone"] * 3

    def test_a_long_curve_is_thinned_in_its_table_and_keeps_its_end(self) -> None:
        long = Curve(label="a", x=tuple(range(1000)), y=tuple(range(1000)))
        rows = curves_table([long], AXES, title=TITLE).rows
        assert len(rows) <= 41
        assert rows[-1][1] == "999"

    def test_the_conclusion_says_where_each_curve_ends(self) -> None:
        assert frames(GALLERY["curves"])[0][1].text == (
            "success by interactions. the whole loop: 0.7 at 1,000; retrieval alone: 0.51 at 1,000."
        )

    def test_a_curve_lies_where_its_values_are(self) -> None:
        for svg in frames(GALLERY["curves"]):
            drawn = list(svg.iter("polyline"))
            first = [tuple(float(n) for n in pair.split(",")) for pair in (drawn[0].get("points") or "").split()]
            assert [x for x, _ in first] == sorted(x for x, _ in first)
            assert first[0][1] > first[1][1] > first[2][1], "higher is further up"

    def test_five_curves_are_too_many(self) -> None:
        with pytest.raises(ValueError, match="told apart"):
            curves("a", [GAINS[0]] * 5, AXES, title=TITLE)

    def test_values_that_do_not_match_their_places_are_refused(self) -> None:
        with pytest.raises(ValueError, match="other numbers of values"):
            Curve(label="a", x=(1,), y=(1, 2))
