"""Golden figures, exact fractions, and every edge at which a statistic could go blank."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.bands import BANDS
from memory.rules.description import (
    UNSERVED,
    describe,
    describe_evidence,
    enough_servings,
    one_in,
    percent,
    probability,
    quantity,
    span,
    upper_tail,
)
from memory.rules.health import Interval

MILLION = 10**6


def exact_tail(losses: int, n: int, rate: Fraction) -> Fraction:
    terms = (math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(losses, n + 1))
    return sum(terms, Fraction(0))


@st.composite
def records(draw, most: int = 60) -> tuple[int, int]:
    n = draw(st.integers(0, most))
    return draw(st.integers(0, n)), n


rates = st.floats(0, 1, allow_subnormal=False)


class TestTheUpperTail:
    def test_has_the_golden_value(self) -> None:
        assert upper_tail(14, 40, 0.18) == pytest.approx(0.007825678850840056, rel=1e-12)

    @given(record=records(), rate=rates)
    def test_is_the_sum_of_exact_fractions(self, record: tuple[int, int], rate: float) -> None:
        losses, n = record
        exact = exact_tail(losses, n, Fraction(rate))
        assert upper_tail(losses, n, rate) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)

    @given(record=records(400), rate=rates)
    def test_falls_with_the_losses(self, record: tuple[int, int], rate: float) -> None:
        losses, n = record
        tails = [upper_tail(k, n, rate) for k in range(n + 1)]
        assert all(0 <= tail <= 1 for tail in tails)
        assert all(later <= earlier + 1e-9 for earlier, later in pairwise(tails))
        assert tails[losses] <= tails[0] == 1

    @given(record=records(400), rate=rates)
    def test_of_losses_and_of_wins_share_everything(self, record: tuple[int, int], rate: float) -> None:
        losses, n = record
        if losses:
            wins = upper_tail(n - losses + 1, n, 1 - rate)
            assert upper_tail(losses, n, rate) + wins == pytest.approx(1, abs=1e-9)

    @pytest.mark.parametrize(("losses", "tail"), [(0, 1.0), (1, 0.0), (40, 0.0)])
    def test_at_rate_zero_nothing_is_lost(self, losses: int, tail: float) -> None:
        assert upper_tail(losses, 40, 0.0) == tail

    @pytest.mark.parametrize("losses", [0, 1, 40])
    def test_at_rate_one_everything_is_lost(self, losses: int) -> None:
        assert upper_tail(losses, 40, 1.0) == 1.0

    def test_of_nothing_is_certain(self) -> None:
        assert upper_tail(0, 0, 0.3) == 1.0

    @pytest.mark.parametrize("losses", [1, 2, 5, 12])
    def test_of_a_tiny_rate_over_a_million_is_that_of_poisson(self, losses: int) -> None:
        """For n = 10**6 and a mean of 2 the two distributions agree to a few parts in a million."""
        poisson = 1 - sum(math.exp(-2) * 2**k / math.factorial(k) for k in range(losses))
        assert upper_tail(losses, MILLION, 2 / MILLION) == pytest.approx(poisson, rel=1e-4)

    def test_keeps_its_digits_far_out(self) -> None:
        assert upper_tail(MILLION, MILLION, 0.999) == pytest.approx(0.999**MILLION, rel=1e-7)
        assert upper_tail(30, 30, 1e-9) == pytest.approx(1e-270, rel=1e-9)

    def test_of_a_million_coins_is_half_at_the_mean(self) -> None:
        """The middle term of 2m coins is 1 / sqrt(pi m), by Stirling's formula."""
        at_mean = 1 / math.sqrt(math.pi * MILLION / 2)
        assert upper_tail(MILLION // 2, MILLION, 0.5) == pytest.approx(0.5 + at_mean / 2, rel=1e-8)

    @pytest.mark.parametrize(
        ("losses", "n", "rate"), [(-1, 4, 0.5), (5, 4, 0.5), (1, 4, -0.1), (1, 4, 1.1), (1, 4, math.nan)]
    )
    def test_refuses_what_cannot_be(self, losses: int, n: int, rate: float) -> None:
        with pytest.raises(ValueError, match="cannot be"):
            upper_tail(losses, n, rate)


class TestEnoughServings:
    @pytest.mark.parametrize(
        ("n", "rate", "enough"),
        [(25, 0.2, True), (24, 0.2, False), (25, 0.8, True), (24, 0.8, False), (40, 0.0, False), (40, 1.0, False)],
    )
    def test_are_five_losses_and_five_wins_to_be_expected(self, n: int, rate: float, enough: bool) -> None:
        assert enough_servings(n, rate) is enough

    def test_do_not_hang_on_rounding(self) -> None:
        assert enough_servings(50, 0.1)
        assert enough_servings(50, 1 - 0.9)


class TestWordsForNumbers:
    @pytest.mark.parametrize(
        ("p", "words"),
        [
            (1.0, "every time"),
            (0.96, "almost every time"),
            (0.56, "about 6 times in 10"),
            (0.35, "about 4 times in 10"),
            (0.3, "about 1 time in 3"),
            (0.007825678850840056, "about 1 time in 128"),
            (0.000123, "about 1 time in 8,100"),
            (0.000001, "about 1 time in 1,000,000"),
            (0.0000009, "less than 1 time in a million"),
            (0.0, "less than 1 time in a million"),
        ],
    )
    def test_a_probability_is_a_natural_frequency(self, p: float, words: str) -> None:
        assert one_in(p) == words

    @pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
    def test_no_probability_is_refused(self, p: float) -> None:
        with pytest.raises(ValueError, match="between 0 and 1"):
            one_in(p)

    @pytest.mark.parametrize(
        ("p", "words"),
        [
            (0, "0%"),
            (0.35, "35%"),
            (0.0056, "0.56%"),
            (0.005, "0.5%"),
            (3e-10, "0.00000003%"),
            (0.999996, "99.9996%"),
            (1, "100%"),
        ],
    )
    def test_a_share_shows_that_it_is_not_quite_0_or_1(self, p: float, words: str) -> None:
        assert percent(p) == words

    @pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf])
    def test_no_share_is_refused(self, p: float) -> None:
        with pytest.raises(ValueError, match="between 0 and 1"):
            percent(p)

    def test_an_interval_is_rounded_outwards(self) -> None:
        assert span(Interval(low=0.229, high=0.501)) == "22% to 51%"
        assert span(Interval(low=0.25, high=0.25 + 1e-16)) == "25% to 25%"
        assert span(Interval(low=0.0, high=1.0)) == "0% to 100%"

    @given(low=rates, width=rates)
    def test_an_interval_in_words_covers_the_interval(self, low: float, width: float) -> None:
        high = low + (1 - low) * width
        first, last = span(Interval(low=low, high=high)).replace("%", "").split(" to ")
        assert float(first) / 100 <= low + 1e-11
        assert high - 1e-11 <= float(last) / 100

    @pytest.mark.parametrize(
        ("p", "words"), [(0.0078257, "0.0078"), (0.00002, "0.00002"), (0.5, "0.5"), (0, "below 0.000001")]
    )
    def test_a_p_value_has_two_digits(self, p: float, words: str) -> None:
        assert probability(p) == words

    @pytest.mark.parametrize(("value", "words"), [(4.0, "4"), (4.16, "4.2"), (0.04, "0"), (1280.4, "1,280")])
    def test_an_expected_count_is_short(self, value: float, words: str) -> None:
        assert quantity(value) == words


class TestADescription:
    def test_is_the_golden_one(self) -> None:
        found = describe(losses=14, n=40, base_rate=0.18)
        assert found.words == (
            "Served 40 times, 14 losses. Similar interactions without it lose about 7 in 40. If the lesson did "
            "nothing, 14 or more losses would happen about 1 time in 128 (exact binomial, p = 0.0078). Plausible loss "
            "rate with it: 22% to 51% (95% Wilson)."
        )
        assert found.p_value == pytest.approx(0.0078, abs=5e-5)
        assert found.interval.low == pytest.approx(0.221, abs=5e-4)
        assert found.interval.high == pytest.approx(0.505, abs=5e-4)
        assert found.expected == pytest.approx(7.2)
        assert found.enough

    def test_of_too_few_servings_has_no_probability(self) -> None:
        found = describe(losses=3, n=5, base_rate=0.18)
        assert found.p_value is None
        assert not found.enough
        assert "Too few servings: 0.9 losses and 4.1 wins were to be expected" in found.words
        assert "happen" not in found.words
        assert "Plausible loss rate with it: 23% to 89%" in found.words

    def test_of_an_unserved_lesson_says_so(self) -> None:
        found = describe(losses=0, n=0, base_rate=0.18)
        assert found.sentences == (UNSERVED,)
        assert found.interval == Interval(low=0.0, high=1.0)

    def test_of_no_losses_has_nothing_to_explain(self) -> None:
        found = describe(losses=0, n=40, base_rate=0.18)
        assert found.p_value == 1.0
        assert "It lost nothing" in found.words
        assert "0% to 9%" in found.words

    def test_of_losses_only_stays_below_certainty(self) -> None:
        found = describe(losses=40, n=40, base_rate=0.18)
        assert found.p_value is not None
        assert 0 < found.p_value < 1e-29
        assert "less than 1 time in a million (exact binomial, p below 0.000001)" in found.words
        assert "91% to 100%" in found.words

    @pytest.mark.parametrize(("rate", "usual"), [(0.0, "never lose"), (1.0, "always lose")])
    def test_of_a_certain_base_rate_is_guarded(self, rate: float, usual: str) -> None:
        found = describe(losses=3, n=40, base_rate=rate)
        assert found.p_value is None
        assert f"Similar interactions without it {usual}." in found.sentences

    def test_of_a_million_servings_at_a_tiny_rate_is_no_zero(self) -> None:
        found = describe(losses=17, n=MILLION, base_rate=5e-6)
        assert found.words == (
            "Served 1,000,000 times, 17 losses. Similar interactions without it lose about 5 in 1,000,000. If the "
            "lesson did nothing, 17 or more losses would happen about 1 time in 50,000 (exact binomial, p = 0.00002). "
            "Plausible loss rate with it: 0.001% to 0.0028% (95% Wilson)."
        )

    def test_says_what_its_base_rate_rests_on(self) -> None:
        found = describe(losses=14, n=40, base_rate=0.18, rests_on="412 servings of the last 30 days")
        assert "That rests on 412 servings of the last 30 days." in found.sentences

    @given(record=records(MILLION), rate=st.one_of(rates, st.floats(0, 1e-5), st.sampled_from([0.0, 1.0])))
    def test_is_never_blank_nor_without_a_number(self, record: tuple[int, int], rate: float) -> None:
        losses, n = record
        found = describe(losses=losses, n=n, base_rate=rate)
        assert found.sentences
        assert all(sentence.endswith(".") for sentence in found.sentences)
        assert not any(word in found.words.lower() for word in ("nan", "inf", "none", "e-", "significan"))
        assert found.enough == (found.p_value is not None)
        assert found.p_value is None or 0 <= found.p_value <= 1


def trial(**changes):
    return {
        "policy": "trial",
        "wins": 26,
        "losses": 14,
        "with_it": {"lost": 13, "n": 20, "expected": 4.0},
        **changes,
    }


class TestADescriptionOfEvidence:
    def test_of_the_policy_trial_rests_on_what_its_rows_were_expected_to_lose(self) -> None:
        found = describe_evidence(trial())
        assert found is not None
        assert (found.losses, found.n, found.base_rate) == (14, 40, 0.2)
        assert "That rests on what was expected, without this lesson, of 20 servings in its ledger." in found.sentences

    def test_without_a_row_there_is_no_base_rate(self) -> None:
        assert describe_evidence(trial(with_it={"lost": 0, "n": 0, "expected": 0.0})) is None

    @pytest.mark.parametrize(
        ("place", "judged"), [(0, "once"), (1, "2 to 4 times"), (3, "10 to 24 times"), (6, "100 or more times")]
    )
    def test_of_the_policy_reference_rests_on_the_band(self, place: int, judged: str) -> None:
        band = BANDS[place]
        shown = {"lower": band.lower, "upper": band.upper, "prior": band.prior, "rate": band.prior}
        found = describe_evidence({"policy": "reference", "wins": 26, "losses": 14, "band": shown})
        assert found is not None
        assert found.base_rate == band.prior
        assert f"That rests on lessons that were judged {judged}." in found.sentences
