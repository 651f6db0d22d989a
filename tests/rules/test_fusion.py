import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.fusion import reciprocal_rank_fusion, usage_boost

ranks = st.lists(st.none() | st.integers(1, 1000), max_size=4)


def test_first_in_both_rankings_scores_two_sixty_firsts():
    assert reciprocal_rank_fusion(1, 1) == pytest.approx(2 / 61)


def test_a_ranking_that_does_not_hold_the_candidate_adds_nothing():
    assert reciprocal_rank_fusion(3, None) == pytest.approx(1 / 63)
    assert reciprocal_rank_fusion(None, None) == 0


def test_a_weight_scales_its_own_ranking_only():
    assert reciprocal_rank_fusion(2, 5, weights=(1.0, 0.5)) == pytest.approx(1 / 62 + 0.5 / 65)


def test_two_middling_ranks_beat_one_good_one():
    assert reciprocal_rank_fusion(10, 10) > reciprocal_rank_fusion(1, None)


@given(ranks=ranks, k=st.integers(0, 100))
def test_the_order_of_the_rankings_does_not_matter(ranks, k):
    assert reciprocal_rank_fusion(*ranks, k=k) == reciprocal_rank_fusion(*reversed(ranks), k=k)


@given(rank=st.integers(1, 1000), other=st.none() | st.integers(1, 1000))
def test_a_better_rank_always_scores_higher(rank, other):
    assert reciprocal_rank_fusion(rank, other) > reciprocal_rank_fusion(rank + 1, other)


@pytest.mark.parametrize(
    ("positions", "options"),
    [((0,), {}), ((1, 2), {"weights": (1.0,)}), ((1,), {"weights": (-1.0,)}), ((1,), {"k": -1})],
)
def test_what_is_no_rank_k_or_weight_is_refused(positions, options):
    with pytest.raises(ValueError, match=r"rank|weight"):
        reciprocal_rank_fusion(*positions, **options)


@pytest.mark.parametrize(
    ("mean", "n", "boost"), [(1.0, 50, 0.008333), (1.0, 1, 0.000909), (-1.0, 50, -0.008333), (0.8, 0, 0.0)]
)
def test_the_boost_has_its_worked_values(mean, n, boost):
    assert usage_boost(mean_reward=mean, n=n) == pytest.approx(boost, abs=1e-6)


@given(mean=st.floats(-1, 1), n=st.integers(0, 10**9))
def test_the_boost_never_leaves_a_hundredth(mean, n):
    assert abs(usage_boost(mean_reward=mean, n=n)) <= 0.01


@pytest.mark.parametrize(("mean", "n"), [(1.1, 1), (float("nan"), 1), (0.5, -1)])
def test_a_boost_from_impossible_numbers_is_refused(mean, n):
    with pytest.raises(ValueError, match=r"outside|negative"):
        usage_boost(mean_reward=mean, n=n)
