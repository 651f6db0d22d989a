"""Priorities: parts in [0, 1], multiplied, each moving the way it says."""

import pytest

from memory.rules.priority import in_words, priority

BASE = {"exposures": 8, "wins": 26, "losses": 14, "days": 7.0, "severity": 0.9}


def test_the_score_is_the_product_of_its_parts() -> None:
    found = priority(**BASE)
    assert found.parts == {
        "reach": 0.5,
        "uncertainty": pytest.approx(0.284, abs=0.001),
        "age": 0.75,
        "severity": 0.9,
    }
    assert found.score == pytest.approx(0.0957, abs=0.0001)


@pytest.mark.parametrize(
    ("part", "value", "expected"),
    [
        ("exposures", 0, 0.1),
        ("exposures", 1_000_000, 0.99999),
        ("days", 0.0, 0.5),
        ("days", -1.0, 0.5),
        ("days", 10_000.0, 1.0),
    ],
)
def test_no_part_leaves_its_range(part: str, value: float, expected: float) -> None:
    found = priority(**{**BASE, part: value})
    assert found.parts["reach" if part == "exposures" else "age"] == pytest.approx(expected, abs=1e-4)
    assert all(0 <= each <= 1 for each in (*found.parts.values(), found.score))


@pytest.mark.parametrize("change", [{"exposures": 80}, {"days": 30.0}, {"severity": 1.0}, {"wins": 2, "losses": 1}])
def test_more_reach_waiting_severity_or_doubt_comes_first(change: dict[str, float]) -> None:
    assert priority(**{**BASE, **change}).score > priority(**BASE).score


def test_a_lesson_without_a_record_is_wholly_uncertain() -> None:
    assert priority(**{**BASE, "wins": 0, "losses": 0}).uncertainty == 1.0


def test_the_parts_are_told_in_words_and_what_is_not_weighed_yet_is_left_out() -> None:
    told = in_words({"severity": 0.3, "reach": 0.5, "private": 1.0})
    assert [(words.partition(":")[0], value) for words, value in told] == [("reach", 0.5), ("severity", 0.3)]
