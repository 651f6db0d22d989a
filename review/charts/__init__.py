"""Charts: pure functions from numbers to inline SVG, each with the same numbers as a table.

Every chart takes a `prefix` for its ids, unique on its page, and the data; `..._table` takes the same data. What a
chart concludes stands in its description, where screen readers find it.
"""

from review.charts.bars import Overlap, Part, overlap_bar, overlap_table, score_bar, score_table
from review.charts.curves import Axes, Curve, curves, curves_table
from review.charts.drawing import Table
from review.charts.intervals import (
    Estimate,
    forest,
    forest_table,
    interval_mini,
    interval_row,
    interval_table,
    top_of,
)
from review.charts.odds import OddsRow, Thresholds, odds_line, odds_table
from review.charts.reliability import Bin, binned, reliability, reliability_table
from review.charts.sparkline import Moment, sparkline, sparkline_table
from review.charts.timeline import Mark, Serving, Span, Timeline, timeline, timeline_table

__all__ = [
    "Axes", "Bin", "Curve", "Estimate", "Mark", "Moment", "OddsRow", "Overlap", "Part", "Serving", "Span", "Table",
    "Thresholds", "Timeline", "binned", "curves", "curves_table", "forest", "forest_table", "interval_mini",
    "interval_row", "interval_table", "odds_line", "odds_table", "overlap_bar", "overlap_table", "reliability",
    "reliability_table", "score_bar", "score_table", "sparkline", "sparkline_table", "timeline", "timeline_table",
    "top_of",
]  # fmt: skip
