"""The difference of two shares, against published intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.difference import difference


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [  # Newcombe 1998, table II, method 10
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 10), -0.2775, 0.2775),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_the_interval_is_the_published_one(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    found = difference(*counts)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(n=st.integers(1, 500), m=st.integers(1, 500), data=st.data())
def test_it_holds_the_difference_and_turns_with_the_sides(n: int, m: int, data: st.DataObject) -> None:
    k, j = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    one, other = difference(k, n, j, m), difference(j, m, k, n)
    assert -1 <= one.low <= one.value <= one.high <= 1
    assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no share"):
        difference(0, 0, 1, 2)
