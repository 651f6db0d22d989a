"""Lessons are compared with lessons that were scored as often."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.bands import BANDS, band_of, live_rate, losses_needed, rate_without


def test_the_measured_table():
    assert [(band.lower, band.upper, band.prior) for band in BANDS] == [
        (1, 1, 0.5062),
        (2, 4, 0.4161),
        (5, 9, 0.1370),
        (10, 24, 0.0759),
        (25, 49, 0.0914),
        (50, 99, 0.0714),
        (100, None, 0.0124),
    ]


def test_the_bands_leave_no_gap_and_do_not_overlap():
    assert BANDS[0].lower == 1
    assert BANDS[-1].upper is None
    for band, following in pairwise(BANDS):
        assert band.upper is not None
        assert following.lower == band.upper + 1


@pytest.mark.parametrize(
    ("scored", "lower"),
    [(1, 1), (2, 2), (4, 2), (5, 5), (9, 5), (10, 10), (24, 10), (25, 25), (49, 25), (50, 50), (99, 50), (100, 100)],
)
def test_both_ends_of_a_band_belong_to_it(scored, lower):
    assert band_of(scored).lower == lower


def test_the_last_band_has_no_end():
    assert band_of(10**9) == BANDS[-1]


@pytest.mark.parametrize("scored", [0, -3])
def test_a_lesson_that_was_never_scored_has_no_band(scored):
    with pytest.raises(ValueError, match="at least one scored retrieval"):
        band_of(scored)


def test_a_store_without_rows_keeps_the_prior():
    for band in BANDS:
        assert live_rate(prior=band.prior, losses=0, scored=0) == pytest.approx(band.prior)


def test_fifty_own_retrievals_weigh_as_much_as_the_prior():
    assert live_rate(prior=0.1, losses=25, scored=50) == pytest.approx(0.3)


def test_many_own_retrievals_replace_the_prior():
    assert live_rate(prior=0.5062, losses=1_000, scored=10_000) == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize(("losses", "scored"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(losses, scored):
    with pytest.raises(ValueError, match="cannot be"):
        live_rate(prior=0.1, losses=losses, scored=scored)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5])
def test_a_rate_that_is_certain_is_refused(rate):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        live_rate(prior=rate, losses=0, scored=0)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        losses_needed(rate)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        losses_needed(0.1, p=rate)


def test_rare_lessons_need_more_losses_than_frequent_ones():
    needed = [losses_needed(band.prior) for band in BANDS]
    assert needed[:3] == pytest.approx([6.76, 5.25, 2.32], abs=0.005)
    assert all(value < 2.0 for value in needed[3:])


@given(st.floats(0.001, 0.999), st.floats(0.0001, 0.5))
def test_the_losses_needed_are_those_whose_probability_is_p(rate, p):
    assert rate ** losses_needed(rate, p) == pytest.approx(p)


@given(st.sampled_from(BANDS), st.integers(0, 5_000), st.integers(0, 5_000))
def test_a_live_rate_lies_between_the_prior_and_the_stores_own_rate(band, losses, wins):
    rate = live_rate(prior=band.prior, losses=losses, scored=losses + wins)
    own = losses / (losses + wins) if losses + wins else band.prior
    assert min(band.prior, own) - 1e-12 <= rate <= max(band.prior, own) + 1e-12
    assert 0 < rate < 1


@given(st.sampled_from(BANDS), *[st.integers(0, 300)] * 4)
def test_a_lesson_that_came_into_its_band_after_the_measurement_can_be_left_out(
    band, losses, wins, own_losses, own_wins
):
    counted = {"losses": losses, "scored": losses + wins}
    rate = rate_without(band=band, **counted, own_losses=own_losses, own_scored=own_losses + own_wins)
    assert 0 < rate < 1
    if own_losses <= losses and own_wins <= wins:
        assert rate == live_rate(
            prior=band.prior, losses=losses - own_losses, scored=sum((losses, wins, -own_losses, -own_wins))
        )
