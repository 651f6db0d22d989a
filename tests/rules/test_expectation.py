"""The expected loss: a judge's rate times what is known of task, peers and niche, without the judged lesson."""

import itertools
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.expectation import (
    ExpectationConstants,
    Tally,
    baseline,
    expected_loss,
    niche_factor,
    peer_factor,
    rate,
    task_factor,
    to_stored,
    withheld_expectation,
)

NOTHING = Tally()

#: The worked example: a caller with 30 of 120 lost, 8 of 12 of them with the lesson.
LOSSES, N = 30 - 8, 120 - 12
TASK = Tally(observed=9, expected=Decimal("4.1")).without(Tally(observed=5, expected=Decimal("2.1")))
PEERS = (
    Tally(observed=16, expected=22).without(Tally(observed=2, expected=2)),
    Tally(observed=3, expected=1),
)
NICHE = Tally(observed=6, expected=3)

sums = st.decimals(0, 500, places=12)
tallies = st.builds(lambda o, e: Tally(observed=o, expected=e), sums, sums)
counts = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).map(
    lambda pair: {"losses": pair[0], "n": pair[0] + pair[1]}
)


def test_the_judges_rate_leaves_the_lessons_own_rows_out():
    assert rate(losses=LOSSES, n=N) == pytest.approx(24 / 118)
    assert rate(losses=LOSSES, n=N) == pytest.approx(0.2034, abs=5e-5)


def test_a_judge_nobody_has_heard_loses_one_in_five():
    assert rate(losses=0, n=0) == pytest.approx(0.20)


def test_ten_interactions_weigh_as_much_as_the_prior():
    assert rate(losses=10, n=10) == pytest.approx(0.6)


def test_a_hard_task_raises_the_expectation():
    assert (TASK.observed, TASK.expected) == (4, 2)
    assert task_factor(TASK.observed, TASK.expected) == 1.5
    expectation = expected_loss(losses=LOSSES, n=N, task=TASK, peers=(), niche=NOTHING)
    assert expectation.expected_loss == pytest.approx(0.2769, abs=5e-5)


def test_an_easy_task_excuses_nobody():
    assert task_factor(0, 50) == 1.0


def test_peers_count_up_to_ten_expected_losses_each():
    assert PEERS[0] == Tally(observed=14, expected=20)
    assert peer_factor(PEERS) == pytest.approx(13 / 14)
    expectation = expected_loss(losses=LOSSES, n=N, task=TASK, peers=PEERS, niche=NOTHING)
    assert expectation.expected_loss == pytest.approx(0.2623, abs=5e-5)


def test_a_peer_below_the_cap_speaks_with_its_own_counts():
    assert peer_factor([Tally(observed=7, expected=10)]) == 10 / 13
    assert peer_factor([Tally(observed=14, expected=20)]) == 10 / 13
    assert peer_factor([Tally(observed=7, expected=9)]) == 10 / 12


def test_without_peers_nothing_changes():
    assert peer_factor(()) == 1.0


def test_losses_without_the_lesson_excuse_it():
    assert niche_factor(6, 3) == 1.5
    expectation = expected_loss(losses=LOSSES, n=N, task=TASK, peers=PEERS, niche=NICHE)
    assert expectation.expected_loss == pytest.approx(0.3479, abs=5e-5)


def test_wins_without_the_lesson_do_not_accuse_it_twice():
    assert niche_factor(3, 6) == 1.0


def test_a_withheld_row_ignores_peers_and_niche():
    expectation = withheld_expectation(losses=LOSSES, n=N, task=TASK)
    assert expectation.expected_loss == pytest.approx(0.2769, abs=5e-5)
    assert (expectation.peer_factor, expectation.niche_factor) == (1.0, 1.0)
    assert expectation == expected_loss(losses=LOSSES, n=N, task=TASK, peers=(), niche=NOTHING)


def test_the_expectation_names_its_factors():
    expectation = expected_loss(losses=LOSSES, n=N, task=TASK, peers=PEERS, niche=NICHE)
    assert expectation.rate == pytest.approx(24 / 118)
    assert expectation.task_factor == 1.5
    assert expectation.peer_factor == pytest.approx(13 / 14)
    assert expectation.niche_factor == 1.5


def test_a_lesson_without_any_history_is_expected_to_lose_one_in_five():
    expectation = expected_loss(losses=0, n=0, task=NOTHING, peers=(NOTHING,), niche=NOTHING)
    assert expectation.expected_loss == pytest.approx(0.20)


def test_the_expectation_is_never_certain():
    assert expected_loss(losses=0, n=10_000, task=NOTHING, peers=(), niche=NOTHING).expected_loss == 0.05
    heavy = Tally(observed=400, expected=1)
    assert expected_loss(losses=9_000, n=10_000, task=heavy, peers=(), niche=heavy).expected_loss == 0.95


def test_the_baseline_is_stored_with_twelve_places():
    assert baseline(losses=0, n=0) == Decimal("0.200000000000")
    assert baseline(losses=30, n=120) == Decimal("0.246153846154")
    assert str(baseline(losses=1, n=1)) == "0.272727272727"


def test_a_tie_in_the_thirteenth_place_goes_to_the_even_digit():
    constants = ExpectationConstants(prior_loss=0.5, rate_weight=2.0)
    n = 2 * 10**12 - 2
    assert baseline(losses=2, n=n, constants=constants) == Decimal("0.000000000002")
    assert baseline(losses=4, n=n, constants=constants) == Decimal("0.000000000002")
    assert to_stored(0.5**13) == Decimal("0.000122070312")
    assert to_stored(3 * 0.5**13) == Decimal("0.000366210938")


def test_the_baseline_does_not_depend_on_the_callers_decimal_context():
    exact = baseline(losses=30, n=121)
    with localcontext() as context:
        context.prec = 4
        context.rounding = "ROUND_UP"
        assert baseline(losses=30, n=121) == exact
        assert to_stored(0.123456789012345) == Decimal("0.123456789012")
        assert Tally(observed=Decimal("1.2345678"), expected=1).without(NOTHING).observed == Decimal("1.2345678")


@pytest.mark.parametrize("e", [0.0, 1.0, -0.1, 1.1, float("nan")])
def test_only_a_probability_can_be_stored(e):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        to_stored(e)


@pytest.mark.parametrize(("losses", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(losses, n):
    with pytest.raises(ValueError, match="cannot be"):
        rate(losses=losses, n=n)
    with pytest.raises(ValueError, match="cannot be"):
        baseline(losses=losses, n=n)


def test_a_tally_cannot_be_negative():
    with pytest.raises(ValueError, match="negative"):
        Tally(observed=-1, expected=2)
    with pytest.raises(ValueError, match="negative"):
        Tally(observed=1, expected=1).without(Tally(observed=1, expected=2))


def test_a_decimal_sum_leaves_no_residue_when_a_part_is_taken_out():
    parts = [Tally(observed=1, expected=Decimal("0.1") / 3) for _ in range(3)]
    stored = [Tally(observed=1, expected=to_stored(float(part.expected))) for part in parts]
    total = Tally(observed=3, expected=sum(part.expected for part in stored))
    for part in stored:
        total = total.without(part)
    assert total == NOTHING


@pytest.mark.parametrize(
    "wrong",
    [
        {"prior_loss": 0.0},
        {"prior_loss": 1.0},
        {"rate_weight": 0.0},
        {"task_weight": -1.0},
        {"peer_weight": 0.0},
        {"peer_cap": 0.0},
        {"niche_weight": 0.0},
        {"lowest": 0.0},
        {"highest": 1.0},
        {"lowest": 0.96},
    ],
)
def test_constants_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="must"):
        ExpectationConstants(**wrong)


def test_small_weights_let_the_counts_speak():
    eager = ExpectationConstants(rate_weight=0.5, task_weight=0.5, peer_weight=0.5, peer_cap=0.5, niche_weight=0.5)
    assert rate(losses=1, n=1, constants=eager) == pytest.approx(1.1 / 1.5)
    assert task_factor(1, 0, eager) == 3.0
    assert niche_factor(1, 0, eager) == 3.0
    assert peer_factor([Tally(observed=2, expected=1)], eager) == 1.5


@given(st.lists(tallies, max_size=6))
def test_the_order_of_the_peers_changes_nothing(peers):
    assert len({peer_factor(order) for order in itertools.islice(itertools.permutations(peers), 60)}) == 1


@given(counts, tallies, st.lists(tallies, max_size=4), tallies)
def test_an_expected_loss_is_a_usable_probability(judge, task, peers, niche):
    expectation = expected_loss(**judge, task=task, peers=peers, niche=niche)
    assert 0.05 <= expectation.expected_loss <= 0.95
    assert 0 < to_stored(expectation.expected_loss) < 1
    assert expectation.task_factor >= 1
    assert expectation.niche_factor >= 1
    assert expectation.peer_factor > 0


@given(counts, tallies, st.lists(tallies, max_size=4), tallies)
def test_within_the_limits_the_odds_are_the_product_of_the_factors(judge, task, peers, niche):
    found = expected_loss(**judge, task=task, peers=peers, niche=niche)
    odds = found.rate / (1 - found.rate) * found.task_factor * found.peer_factor * found.niche_factor
    if 0.05 < found.expected_loss < 0.95:
        assert found.expected_loss / (1 - found.expected_loss) == pytest.approx(odds)


@given(counts, tallies, st.lists(tallies, max_size=4), tallies)
def test_losses_without_the_lesson_never_lower_its_expectation(judge, task, peers, niche):
    worse = Tally(observed=niche.observed + 5, expected=niche.expected)
    before = expected_loss(**judge, task=task, peers=peers, niche=niche).expected_loss
    assert expected_loss(**judge, task=task, peers=peers, niche=worse).expected_loss >= before


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_stored_baseline_is_the_rate_to_twelve_places(losses, wins):
    n = losses + wins
    assert float(baseline(losses=losses, n=n)) == pytest.approx(rate(losses=losses, n=n), abs=5.1e-13)
    assert 0 < baseline(losses=losses, n=n) < 1


@given(tallies, tallies)
def test_taking_out_what_was_added_restores_a_tally(one, other):
    total = Tally(observed=one.observed + other.observed, expected=one.expected + other.expected)
    assert total.without(other) == one


@given(sums, sums)
def test_decimals_and_floats_of_one_value_give_one_factor(o, e):
    assert task_factor(o, e) == task_factor(float(o), float(e))
    assert niche_factor(o, e) == niche_factor(float(o), float(e))
    as_decimals = peer_factor([Tally(observed=o, expected=e)])
    assert as_decimals == peer_factor([Tally(observed=float(o), expected=float(e))])
