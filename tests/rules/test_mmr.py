import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.mmr import Pick, Selection, mmr


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def cases(draw):
    n = draw(st.integers(0, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(n, 4))) if n else np.empty((0, 4))
    query = unit(random.normal(size=(1, 4)))[0]
    held = frozenset(draw(st.sets(st.integers(0, 11))))
    return vectors @ query, vectors, draw(st.integers(0, 14)), draw(st.floats(0, 1)), held


def by_the_definition(similarities, vectors, k, lambda_, held):
    """MMR written out as in the paper, one comparison at a time."""
    chosen: list[int] = []
    withheld: list[int] = []
    left = list(range(len(similarities)))
    while left and len(chosen) < k:
        best = max(
            left,
            key=lambda i: (
                lambda_ * similarities[i] - (1 - lambda_) * max(float(vectors[i] @ vectors[j]) for j in chosen)
                if chosen
                else similarities[i]
            ),
        )
        left.remove(best)
        (withheld if best in held else chosen).append(best)
    return chosen, withheld


@given(cases())
def test_it_picks_what_the_definition_picks(case):
    similarities, vectors, k, lambda_, held = case
    picked = mmr(similarities, vectors, k, lambda_, withheld=held.__contains__)
    expected = by_the_definition(similarities, vectors, k, lambda_, held)
    assert ([p.index for p in picked.chosen], [p.index for p in picked.withheld]) == expected


@given(cases())
def test_it_returns_k_or_everything_and_nothing_twice(case):
    similarities, vectors, k, lambda_, _ = case
    picked = mmr(similarities, vectors, k, lambda_)
    indexes = [p.index for p in picked.chosen]
    assert len(indexes) == len(set(indexes)) == min(k, len(similarities))


@given(cases())
def test_held_back_candidates_change_nothing_for_the_others(case):
    similarities, vectors, k, lambda_, held = case
    rest = [i for i in range(len(similarities)) if i not in held]
    with_them = mmr(similarities, vectors, k, lambda_, withheld=held.__contains__)
    without = mmr(similarities[rest], vectors[rest], k, lambda_)
    assert [p.index for p in with_them.chosen] == [rest[p.index] for p in without.chosen]


def test_lambda_one_is_pure_relevance():
    vectors = unit([[1, 0], [1, 0.01], [0, 1]])
    picked = mmr(np.array([0.5, 0.9, 0.7]), vectors, 3, lambda_=1.0)
    assert [p.index for p in picked.chosen] == [1, 2, 0]
    assert [p.value for p in picked.chosen] == [0.9, 0.7, 0.5]


def test_the_first_pick_is_the_most_relevant_whatever_lambda_is():
    vectors = unit([[1, 0], [0, 1]])
    assert mmr(np.array([0.2, 0.8]), vectors, 1, lambda_=0.0).chosen[0].index == 1


def test_a_second_wording_gives_way_to_something_new():
    vectors = unit([[1, 0, 0], [0.99, 0.01, 0], [0, 1, 0]])
    picked = mmr(np.array([0.9, 0.89, 0.6]), vectors, 2)
    assert [p.index for p in picked.chosen] == [0, 2]
    assert picked.chosen[1].value == pytest.approx(0.5 * 0.6)


def test_ties_keep_the_order_of_the_input():
    vectors = np.eye(4)
    assert [p.index for p in mmr(np.full(4, 0.5), vectors, 4).chosen] == [0, 1, 2, 3]


def test_a_held_back_candidate_fills_no_place_and_repels_nobody():
    vectors = unit([[1, 0, 0], [0.99, 0.01, 0], [0, 1, 0]])
    picked = mmr(np.array([0.9, 0.89, 0.6]), vectors, 2, withheld=lambda i: i == 0)
    assert picked.withheld == (Pick(index=0, value=0.45),)
    assert [p.index for p in picked.chosen] == [1, 2]


def test_only_what_is_picked_is_asked_about():
    asked = []

    def withheld(index):
        asked.append(index)
        return False

    mmr(np.array([0.9, 0.5, 0.1]), np.eye(3), 1, withheld=withheld)
    assert asked == [0]


def test_nothing_to_choose_from_is_no_choice():
    assert mmr(np.empty(0), np.empty((0, 3)), 5) == Selection()


@pytest.mark.parametrize(
    ("similarities", "vectors", "lambda_"),
    [
        (np.zeros(2), np.eye(3), 0.5),
        (np.zeros(3), np.zeros(3), 0.5),
        (np.zeros(3), np.eye(3), 1.5),
        (np.array([0.0, np.nan, 0.0]), np.eye(3), 0.5),
        (np.zeros(3), np.full((3, 3), np.inf), 0.5),
    ],
)
def test_input_that_does_not_fit_is_refused(similarities, vectors, lambda_):
    with pytest.raises(ValueError, match=r"fit|lambda|finite"):
        mmr(similarities, vectors, 2, lambda_)
