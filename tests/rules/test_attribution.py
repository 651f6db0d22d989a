"""A loss is shared among the lessons handed out together."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.attribution import TOLERANCE, reaches, stays_within, total_share


def test_a_lesson_that_was_alone_carries_each_loss_whole():
    assert total_share([1] * 6) == 6.0


def test_four_lessons_that_share_five_losses_carry_a_quarter_of_each():
    assert total_share([4] * 5) == 1.25
    assert total_share([4] * 6) == 1.5


def test_without_losses_nothing_is_carried():
    assert total_share([]) == 0.0


@pytest.mark.parametrize("cohort", [0, -1])
def test_a_cohort_without_the_lesson_is_refused(cohort):
    with pytest.raises(ValueError, match="at least the lesson itself"):
        total_share([3, cohort])


def test_six_thirds_reach_two_although_their_naive_sum_does_not():
    naive = 0.0
    for _ in range(6):
        naive += 1 / 3
    assert naive < 2.0
    assert reaches(naive, 2.0)
    assert reaches(total_share([3] * 6), 2.0)


def test_the_tolerance_is_far_below_a_real_difference():
    assert TOLERANCE == 1e-9
    assert reaches(2.0 - 0.9e-9, 2.0)
    assert not reaches(2.0 - 1.1e-9, 2.0)
    assert stays_within(2.0 + 0.9e-9, 2.0)
    assert not stays_within(2.0 + 1.1e-9, 2.0)


def test_a_tolerance_may_be_given():
    assert not reaches(1.5, 2.0, 0.4)
    assert reaches(1.5, 2.0, 0.5)
    assert stays_within(2.5, 2.0, 0.5)
    assert not stays_within(2.5, 2.0, 0.4)


@given(st.lists(st.integers(1, 50), max_size=40), st.data())
def test_the_order_of_the_losses_never_matters(cohorts, data):
    assert total_share(data.draw(st.permutations(cohorts))) == total_share(cohorts)


@given(st.integers(1, 50), st.integers(1, 20))
def test_the_shares_of_a_cohort_add_up_to_its_losses(cohort, losses):
    assert math.fsum(total_share([cohort] * losses) for _ in range(cohort)) == pytest.approx(losses, abs=TOLERANCE)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_a_share_lies_between_nothing_and_all_of_the_losses(cohorts):
    assert 0 < total_share(cohorts) <= len(cohorts)
