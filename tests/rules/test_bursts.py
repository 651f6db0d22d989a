"""Bursts: stretches in which more happens than chance brings together."""

import pytest

from memory.rules.bursts import bursts


def found(moments: list[float]) -> list[list[int]]:
    return [list(each) for each in bursts(moments, more_than=2, within=10)]


def test_few_events_or_slow_ones_are_no_burst() -> None:
    assert found([]) == []
    assert found([0, 1]) == []
    assert found([0, 6, 12, 18, 24]) == []


def test_more_than_so_many_within_the_time_are_one_burst() -> None:
    assert found([0, 100, 103, 110, 300]) == [[1, 2, 3]]


def test_the_time_is_inclusive() -> None:
    assert found([0, 5, 10]) == [[0, 1, 2]]
    assert found([0, 5, 10.001]) == []


def test_stretches_that_overlap_are_one_and_others_stay_apart() -> None:
    assert found([0, 4, 8, 12, 16]) == [[0, 1, 2, 3, 4]]
    assert found([0, 1, 2, 50, 51, 52, 53]) == [[0, 1, 2], [3, 4, 5, 6]]


def test_events_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="sorted"):
        found([1, 0])
