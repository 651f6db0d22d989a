import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.decay import age_factor, effective_score, is_stale

days = st.floats(0, 1e6)


@pytest.mark.parametrize(("age", "factor"), [(0, 1.0), (30, 0.95), (60, 0.925), (1e9, 0.9)])
def test_the_age_factor_has_its_worked_values(age, factor):
    assert age_factor(age) == pytest.approx(factor)


@given(age=days, half_life=st.floats(0.01, 1e6))
def test_age_takes_a_tenth_at_most(age, half_life):
    assert 0.9 <= age_factor(age, half_life) <= 1.0


@given(younger=days, more=days)
def test_an_older_lesson_never_gains(younger, more):
    assert age_factor(younger + more) <= age_factor(younger)


def test_an_age_below_zero_counts_as_fresh():
    assert age_factor(-5.0) == 1.0


@pytest.mark.parametrize("half_life", [0.0, -1.0, float("nan")])
def test_a_half_life_must_be_above_zero(half_life):
    with pytest.raises(ValueError, match="half-life"):
        age_factor(1.0, half_life)


def test_the_effective_score_has_its_worked_value():
    assert effective_score(mean_reward=1.0, age_days=30, hits=2, misses=1) == pytest.approx(0.55)


def test_hits_raise_and_misses_lower_the_effective_score():
    level = effective_score(mean_reward=0.5, age_days=10, hits=1, misses=1)
    assert effective_score(mean_reward=0.5, age_days=10, hits=3, misses=1) == pytest.approx(level + 0.1)
    assert effective_score(mean_reward=0.5, age_days=10, hits=1, misses=3) == pytest.approx(level - 0.1)


@pytest.mark.parametrize(
    ("mean", "newest", "effective", "stale"),
    [
        (0.8, 60, 0.19, True),
        (0.8, 59.9, 0.19, False),  # heard of recently
        (0.8, 60, 0.2, False),  # still worth something
        (0.0, 60, 0.1, False),  # never did well: nothing went stale
        (-0.5, 600, -0.5, False),
    ],
)
def test_stale_is_a_good_lesson_long_unheard_of_and_worn_out(mean, newest, effective, stale):
    assert is_stale(mean_reward=mean, newest_outcome_days=newest, effective=effective) is stale
