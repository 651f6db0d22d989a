"""Signals have fixed prices, and of several judges the strongest decides by its latest word."""

from decimal import Decimal
from itertools import pairwise
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.signals import (
    GOOD,
    RETRACTED,
    REWARDS,
    SIGNALS,
    SOURCES,
    Verdict,
    decide,
    is_good,
    loss_of,
    reward_of,
)


def say(source: str, sequence: int, signal: str) -> Verdict:
    number = (SOURCES.index(source) << 16) + sequence
    return Verdict(id=UUID(int=number), source=source, sequence=sequence, signal=signal)


@st.composite
def histories(draw: st.DrawFn, sources: tuple[str, ...] = SOURCES) -> list[Verdict]:
    """What the sources said about one interaction, each in its own sequence from 1, in any order of arrival."""
    verdicts = []
    for source in sources:
        signals = draw(st.lists(st.sampled_from(SIGNALS), max_size=4))
        verdicts += [say(source, number, signal) for number, signal in enumerate(signals, start=1)]
    return draw(st.permutations(verdicts))


@pytest.mark.parametrize(
    ("signal", "price"),
    [
        ("tests_passed", "1.0"),
        ("used", "0.9"),
        ("copied", "0.85"),
        ("accepted", "0.8"),
        ("edited", "0.75"),
        ("compiled", "0.7"),
        ("rejected", "-0.5"),
        ("failed", "-1.0"),
        ("retracted", "0"),
    ],
)
def test_a_signal_has_its_price(signal, price):
    assert reward_of(signal) == Decimal(price)


def test_the_vocabulary_is_closed():
    assert tuple(REWARDS) == SIGNALS
    assert len(SIGNALS) == 9
    assert isinstance(REWARDS, MappingProxyType)


def test_an_unknown_signal_is_refused_with_the_vocabulary():
    with pytest.raises(ValueError, match=r"'liked'.*tests_passed, used, copied, accepted, edited, compiled, rejected"):
        reward_of("liked")


def test_compiling_is_not_passing():
    assert Decimal("0.71") == GOOD
    assert [signal for signal in SIGNALS if is_good(reward_of(signal))] == [
        "tests_passed",
        "used",
        "copied",
        "accepted",
        "edited",
    ]


def test_exactly_the_lowest_good_reward_is_good():
    assert is_good(Decimal("0.71"))
    assert not is_good(Decimal("0.7099"))


def test_rewards_below_zero_are_losses_above_zero_wins_and_zero_is_not_scored():
    assert [signal for signal in SIGNALS if loss_of(reward_of(signal)) == 1] == ["rejected", "failed"]
    assert [signal for signal in SIGNALS if loss_of(reward_of(signal)) is None] == ["retracted"]
    assert loss_of(Decimal("0.001")) == 0
    assert loss_of(Decimal("-0.001")) == 1
    assert loss_of(Decimal("-0.0")) is None


def test_the_sources_are_ranked_strongest_first():
    assert SOURCES == ("caller", "machine", "attributed", "self_curriculum", "unknown")


def test_each_source_yields_to_every_stronger_one():
    for stronger, weaker in pairwise(SOURCES):
        assert decide([say(weaker, 1, "tests_passed"), say(stronger, 1, "failed")]) == say(stronger, 1, "failed")


def test_nobody_decides_when_nobody_has_judged():
    assert decide([]) is None


def test_within_a_source_the_latest_word_counts_even_when_it_arrives_first():
    assert decide([say("caller", 3, "rejected"), say("caller", 1, "accepted"), say("caller", 2, "used")]) == say(
        "caller", 3, "rejected"
    )


def test_a_caller_may_change_their_mind_again_and_again():
    words = [say("caller", 1, "accepted"), say("caller", 2, "rejected"), say("caller", 3, "accepted")]
    assert [decide(words[:n]) for n in (1, 2, 3)] == words


def test_after_a_retraction_the_next_source_decides():
    machine = say("machine", 1, "failed")
    assert decide([say("caller", 1, "accepted"), say("caller", 2, RETRACTED), machine]) == machine


def test_after_a_retraction_without_another_source_nobody_decides():
    assert decide([say("caller", 1, "accepted"), say("caller", 2, RETRACTED)]) is None


def test_a_retraction_is_no_verdict_of_a_weaker_source_either():
    assert decide([say("unknown", 1, RETRACTED), say("machine", 1, RETRACTED)]) is None


def test_a_source_that_judges_again_after_retracting_counts_again():
    again = say("caller", 3, "rejected")
    assert decide([say("caller", 1, "accepted"), say("caller", 2, RETRACTED), again]) == again


def test_a_verdict_of_an_unknown_source_is_refused_with_the_vocabulary():
    with pytest.raises(ValueError, match=r"'user'.*caller, machine, attributed, self_curriculum, unknown"):
        Verdict(id=UUID(int=1), source="user", sequence=1, signal="used")


def test_a_verdict_with_an_unknown_signal_is_refused():
    with pytest.raises(ValueError, match="'liked'"):
        Verdict(id=UUID(int=1), source="caller", sequence=1, signal="liked")


@given(histories(), st.data())
def test_the_order_of_outcomes_never_matters(history, data):
    assert decide(data.draw(st.permutations(history))) == decide(history)


@given(histories(), st.randoms(use_true_random=False))
def test_crediting_after_every_arrival_ends_where_crediting_once_ends(history, random):
    arrived: list[Verdict] = []
    credit = None
    for verdict in random.sample(history, len(history)):
        arrived.append(verdict)
        credit = decide(arrived)
    assert credit == decide(history)


@given(histories(), st.sampled_from(SIGNALS))
def test_a_weaker_sources_verdict_never_changes_the_decision(history, signal):
    decision = decide(history)
    weaker = SOURCES[SOURCES.index(decision.source) + 1 :] if decision else ()
    for source in weaker:
        assert decide([*history, say(source, 99, signal)]) == decision


@given(histories(), st.sampled_from([signal for signal in SIGNALS if signal != RETRACTED]))
def test_a_new_word_of_the_strongest_source_always_decides(history, signal):
    word = say("caller", 99, signal)
    assert decide([*history, word]) == word


@given(histories())
def test_an_earlier_word_of_a_source_never_changes_the_decision(history):
    for source in SOURCES:
        spoken = [verdict.sequence for verdict in history if verdict.source == source]
        if spoken:
            assert decide([*history, say(source, 0, "failed")]) == decide(history)


@given(histories(SOURCES[1:]), histories(("caller",)))
def test_a_source_that_retracts_counts_as_never_having_judged(others, words):
    assert decide([*others, *words, say("caller", 99, RETRACTED)]) == decide(others)
