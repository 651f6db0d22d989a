"""Coins are hashes: fair, repeatable, and checkable afterwards."""

import hashlib
import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.ledger import step
from memory.rules.probation import (
    ProbationConstants,
    admits_reference,
    admits_trial,
    counted_evidence,
    interaction_fraction,
    probation_evidence,
    probation_probability,
    task_fraction,
    withheld_by_coin,
    withheld_share,
)

LESSON = UUID("018f2f6e-7a10-7c3e-9b1d-5f1f6d0e9a01")
OTHER = UUID("018f2f6e-7a10-7c3e-9b1d-5f1f6d0e9a02")

uuids = st.uuids()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


TASKS = [digest(f"task {number}") for number in range(2_000)]
INTERACTIONS = [UUID(bytes=hashlib.sha256(f"interaction {n}".encode()).digest()[:16]) for n in range(4_000)]


def test_a_task_fraction_is_the_head_of_a_hash_over_lesson_and_task():
    task = digest("write a parser")
    head = hashlib.sha256(LESSON.bytes + bytes.fromhex(task)).digest()[:8]
    assert task_fraction(LESSON, task) == int.from_bytes(head, "big") / 2**64


def test_an_interaction_fraction_is_the_head_of_a_hash_over_both_ids():
    head = hashlib.sha256(LESSON.bytes + OTHER.bytes).digest()[:8]
    assert interaction_fraction(LESSON, OTHER) == int.from_bytes(head, "big") / 2**64


def test_known_fractions_never_change():
    """Exposures of earlier versions stay explainable only while these values hold."""
    assert interaction_fraction(UUID(int=1), UUID(int=2)) == 0x78D68721DEBB423C / 2**64
    assert task_fraction(UUID(int=1), "00" * 32) == 0x9E56A0E80D3B3B26 / 2**64


def test_the_largest_hash_stays_below_one(monkeypatch):
    class AllOnes:
        def digest(self) -> bytes:
            return b"\xff" * 32

    monkeypatch.setattr(hashlib, "sha256", lambda _: AllOnes())
    assert task_fraction(LESSON, TASKS[0]) < 1.0


def test_a_task_digest_must_be_hexadecimal():
    with pytest.raises(ValueError, match="hex"):
        task_fraction(LESSON, "not a digest")


@given(uuids, uuids)
def test_fractions_lie_in_the_unit_interval_and_repeat(lesson, interaction):
    fraction = interaction_fraction(lesson, interaction)
    assert 0 <= fraction < 1
    assert interaction_fraction(lesson, interaction) == fraction


@pytest.mark.parametrize("number", range(10))
def test_one_task_in_twenty_sees_a_quarantined_lesson(number):
    lesson = UUID(int=number)
    admitted = [
        task
        for task in TASKS
        if admits_reference(lesson=lesson, task_digest=task, hours_since_loss=30.0, after_hours=24.0)
    ]
    assert 0.02 <= len(admitted) / len(TASKS) <= 0.10


def test_the_same_task_always_gets_the_same_answer():
    def answers() -> list[bool]:
        return [
            admits_reference(lesson=LESSON, task_digest=task, hours_since_loss=hours, after_hours=24.0)
            for task in TASKS[:200]
            for hours in (24.0, 1_000.0)
        ]

    first = answers()
    assert answers() == first
    assert first[::2] == first[1::2]


def test_another_lesson_is_sampled_on_other_tasks():
    def sample(lesson: UUID) -> list[str]:
        return [
            task
            for task in TASKS
            if admits_reference(lesson=lesson, task_digest=task, hours_since_loss=30.0, after_hours=24.0)
        ]

    assert sample(LESSON) != sample(OTHER)


def test_no_task_sees_the_lesson_before_the_pause_is_over():
    admitted = next(task for task in TASKS if task_fraction(LESSON, task) < 0.05)
    for hours, expected in ((0.0, False), (23.999, False), (24.0, True), (math.inf, True)):
        assert (
            admits_reference(lesson=LESSON, task_digest=admitted, hours_since_loss=hours, after_hours=24.0) is expected
        )


def test_a_share_of_nothing_admits_nothing_and_a_share_of_all_admits_all():
    for share, expected in ((0.0, False), (1.0, True)):
        assert all(
            admits_reference(lesson=LESSON, task_digest=task, hours_since_loss=99.0, after_hours=24.0, share=share)
            is expected
            for task in TASKS[:100]
        )


def withheld_of_many(lesson, share):
    return [withheld_by_coin(lesson=lesson, interaction=interaction, share=share) for interaction in INTERACTIONS]


@pytest.mark.parametrize("share", [0.05, 1 / 3, 0.5, 0.95])
def test_the_coin_withholds_the_share_that_it_is_given(share):
    assert sum(withheld_of_many(LESSON, share)) / len(INTERACTIONS) == pytest.approx(share, abs=0.04)


def test_two_lessons_of_one_interaction_have_independent_coins():
    both = [a and b for a, b in zip(withheld_of_many(LESSON, 0.5), withheld_of_many(OTHER, 0.5), strict=True)]
    assert sum(both) / len(INTERACTIONS) == pytest.approx(0.25, abs=0.03)


def test_the_coin_falls_below_the_share():
    for interaction in INTERACTIONS[:100]:
        expected = interaction_fraction(LESSON, interaction) < 0.7
        assert withheld_by_coin(lesson=LESSON, interaction=interaction, share=0.7) is expected


@given(uuids, uuids, st.floats(0, 1), st.floats(0, 1))
def test_what_a_small_share_withholds_a_larger_one_withholds_too(lesson, interaction, one, other):
    low, high = sorted((one, other))
    left_out = [withheld_by_coin(lesson=lesson, interaction=interaction, share=share) for share in (low, high, low)]
    assert left_out[1] >= left_out[0] == left_out[2], "the same toss, whatever was asked in between"


@pytest.mark.parametrize(
    ("odds", "share"), [(1, 1 / 401), (10, 1 / 5), (20, 1 / 2), (50, 25 / 29), (200, 0.95), (1e6, 0.95)]
)
def test_a_lesson_on_trial_is_withheld_the_more_the_worse_its_record(odds, share):
    assert withheld_share(math.log(odds)) == pytest.approx(share)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_share_withheld_grows_with_the_evidence_and_never_reaches_all(one, other):
    low, high = sorted((one, other))
    assert 0 < withheld_share(low) <= withheld_share(high) <= 0.95


def test_a_coin_of_sharpness_one_follows_the_probability_of_harm():
    fair = ProbationConstants(even_odds=19.0, sharpness=1.0)  # one lesson in twenty does harm
    assert withheld_share(math.log(10), fair) == pytest.approx(0.05 * 10 / (0.05 * 10 + 0.95))


def test_without_a_release_all_the_evidence_counts():
    assert counted_evidence(4.5, trial_odds=10) == 4.5


@pytest.mark.parametrize(
    ("s", "counted"), [(6.0, math.log(10)), (7.0, math.log(10) + 1), (3.0, math.log(10)), (1.5, 1.5), (0.0, 0.0)]
)
def test_after_a_release_to_trial_a_lesson_stands_as_one_that_has_just_come_on_trial(s, counted):
    assert counted_evidence(s, released_s=6.0, trial_odds=10) == pytest.approx(counted)


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0, 50))
def test_a_release_never_makes_more_count_and_more_evidence_never_less(s, more, released_s):
    low, high = (counted_evidence(each, released_s=released_s, trial_odds=10) for each in sorted((s, more)))
    assert low <= high <= max(s, more)


def test_a_hash_at_the_threshold_is_on_the_other_side():
    task, interaction = TASKS[0], INTERACTIONS[0]
    assert not admits_reference(
        lesson=LESSON,
        task_digest=task,
        hours_since_loss=30.0,
        after_hours=24.0,
        share=task_fraction(LESSON, task),
    )
    fraction = interaction_fraction(LESSON, interaction)
    assert not withheld_by_coin(lesson=LESSON, interaction=interaction, share=fraction)
    exact = ProbationConstants(share=fraction, ceiling=fraction)
    assert probation_probability(0.0, exact) == fraction
    assert not admits_trial(lesson=LESSON, interaction=interaction, hours_since_entry=30.0, d=0.0, constants=exact)


def test_constants_may_lie_at_their_limits():
    open_door = ProbationConstants(share=1.0, ceiling=1.0, after_hours=0.0, evidence_cap=0.0)
    assert probation_probability(3.0, open_door) == 1.0
    assert admits_trial(lesson=LESSON, interaction=INTERACTIONS[0], hours_since_entry=0.0, d=0.0, constants=open_door)


def test_a_share_of_nothing_switches_probation_off():
    closed = ProbationConstants(share=0.0)
    assert probation_probability(-100.0, closed) == 0.0
    assert not any(
        admits_trial(lesson=LESSON, interaction=i, hours_since_entry=99.0, d=-100.0, constants=closed)
        for i in INTERACTIONS[:100]
    )


def test_without_evidence_one_interaction_in_twenty_is_admitted():
    assert probation_probability(0.0) == 0.05


def test_two_probation_wins_at_one_in_five_double_the_chance():
    win = step(weight=1.0, loss=0, expected=0.2)
    d = probation_evidence([win, win])
    assert d == pytest.approx(-0.6729, abs=5e-5)
    assert probation_probability(d) == pytest.approx(0.0980, abs=5e-5)


def test_the_chance_never_exceeds_one_half():
    assert probation_probability(-math.log(10)) == pytest.approx(0.5)
    assert probation_probability(-5.0) == 0.5
    assert probation_probability(-1e6) == 0.5
    assert probation_probability(-math.inf) == 0.5


def test_losses_lower_the_chance_to_one_in_four_hundred_and_no_further():
    floor = math.exp(-3) / 20
    assert probation_probability(3.0) == pytest.approx(floor)
    assert probation_probability(50.0) == probation_probability(3.0)


def test_the_evidence_starts_at_nothing():
    assert probation_evidence([]) == 0.0


def test_a_win_after_many_losses_still_counts_in_full():
    assert probation_evidence([2.0, 2.0, 2.0]) == 3.0
    assert probation_evidence([2.0, 2.0, 2.0, -0.5]) == 2.5


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_more_evidence_against_a_lesson_never_opens_the_door_wider(one, other):
    low, high = sorted((one, other))
    assert 0 < probation_probability(high) <= probation_probability(low) <= 0.5


@given(st.lists(st.floats(-1.1, 1.1), max_size=30))
def test_the_evidence_never_exceeds_its_cap(steps):
    assert probation_evidence(steps) <= 3.0
    assert probation_evidence(steps) <= math.fsum(steps) + 1e-9


def test_probation_admits_the_share_that_its_evidence_says():
    for d, low, high in ((0.0, 0.035, 0.065), (-2.0, 0.33, 0.41), (3.0, 0.0, 0.006)):
        admitted = sum(
            admits_trial(lesson=LESSON, interaction=interaction, hours_since_entry=25.0, d=d)
            for interaction in INTERACTIONS
        )
        assert low <= admitted / len(INTERACTIONS) <= high


def test_whoever_is_admitted_stays_admitted_when_the_evidence_improves():
    for interaction in INTERACTIONS[:500]:
        if admits_trial(lesson=LESSON, interaction=interaction, hours_since_entry=25.0, d=0.0):
            assert admits_trial(lesson=LESSON, interaction=interaction, hours_since_entry=25.0, d=-1.0)


def test_probation_begins_a_day_after_entry():
    interaction = next(i for i in INTERACTIONS if interaction_fraction(LESSON, i) < 0.05)
    for hours, expected in ((0.0, False), (23.999, False), (24.0, True), (500.0, True)):
        assert admits_trial(lesson=LESSON, interaction=interaction, hours_since_entry=hours, d=0.0) is expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": -0.01},
        {"share": 0.6},
        {"ceiling": 1.5},
        {"most_withheld": 0.0},
        {"most_withheld": 1.0},
        {"even_odds": 0.0},
        {"sharpness": 0.0},
        {"after_hours": -1.0},
        {"evidence_cap": -1.0},
    ],
)
def test_constants_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must satisfy|cannot be negative|must be positive"):
        ProbationConstants(**wrong)
