"""What a verdict is worth: a crossing comes before every approach, and nothing counts that changes nothing."""

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.information import (
    Change,
    Epoch,
    Prospect,
    Said,
    by_epoch,
    by_ledger,
    in_words,
    information,
    judged_blind,
)
from memory.rules.ledger import step

TRIAL, RELEASE, QUARANTINE = math.log(10), math.log(50), math.log(200)


def standing(
    s: float, *, said: Said | None = None, quarantined: bool = False, tasks: int = 2, e: float = 0.2
) -> Prospect:
    return by_ledger(s=s, expected=e, said=said, quarantined=quarantined, lost_tasks=tasks)


class TestUnderTheLedger:
    def test_a_loss_at_two_nats_puts_the_lesson_on_trial(self) -> None:
        """0.7621 more than 2.0 is beyond ln 10 = 2.3026."""
        found = information(standing(2.0))
        assert (found.loss, found.win, found.nearer) == (Change.TRIAL, None, None)
        assert found.value == pytest.approx((1 + 0.2) / 2)
        assert in_words(found, "“Always retry”") == "A loss here would put “Always retry” on trial."

    def test_a_win_just_above_the_trial_ends_it(self) -> None:
        found = information(standing(2.5))
        assert (found.loss, found.win) == (None, Change.CLEARED)
        assert in_words(found, "it") == "A win here would end the trial of it."

    def test_a_win_that_leaves_the_lesson_at_the_threshold_leaves_it_on_trial(self) -> None:
        win = step(weight=1.0, loss=0, expected=0.2)
        assert information(standing(TRIAL - win)).win is None
        assert information(standing(TRIAL - win - 1e-6)).win is Change.CLEARED

    def test_a_loss_near_two_hundred_quarantines_if_it_falls_on_a_second_task(self) -> None:
        assert information(standing(4.9)).loss is Change.QUARANTINE
        one_task = information(standing(4.9, tasks=1))
        assert (one_task.loss, one_task.nearer) == (None, Change.CLEARED)

    def test_a_release_to_trial_asks_for_a_worse_record(self) -> None:
        after = by_ledger(s=5.5, expected=0.2, said=None, quarantined=False, lost_tasks=3, released_s=5.5)
        assert information(after).loss is None, "5.5 and ln 3 are needed"
        worse = by_ledger(s=6.0, expected=0.2, said=None, quarantined=False, lost_tasks=3, released_s=5.5)
        assert information(worse).loss is Change.QUARANTINE

    def test_a_win_frees_a_quarantined_lesson_and_a_loss_tells_nothing(self) -> None:
        found = information(standing(RELEASE + 0.1, quarantined=True))
        assert (found.loss, found.win) == (None, Change.FREED)
        assert information(standing(RELEASE - 1, quarantined=True)).win is Change.FREED, "it waits for an occasion only"

    def test_a_callers_word_takes_the_place_of_the_machines(self) -> None:
        machine_won = Said(weight=0.7, loss=0)
        moved = standing(1.5, said=machine_won)
        assert moved.if_lost == pytest.approx(1.5 + 0.7 * 0.3365 + 0.7621, abs=1e-4)
        assert moved.if_won == pytest.approx(1.5 - 0.3 * 0.3365, abs=1e-4)

    def test_the_same_word_of_the_same_weight_moves_nothing(self) -> None:
        same = standing(2.0, said=Said(weight=1.0, loss=1))
        assert same.if_lost == pytest.approx(2.0)
        assert information(same).loss is None

    def test_a_lesson_that_nobody_suspects_is_only_brought_nearer(self) -> None:
        found = information(standing(0.0))
        assert (found.loss, found.win, found.nearer) == (None, None, Change.TRIAL)
        assert 0 < found.value < 0.5
        assert in_words(found, "it") == "A loss here would bring it nearer to a trial."

    @given(
        s=st.floats(0, 8), e=st.floats(0.05, 0.95), quarantined=st.booleans(), tasks=st.integers(1, 3),
        said=st.none() | st.builds(Said, weight=st.sampled_from([0.5, 0.7, 1.0]), loss=st.integers(0, 1)),
    )  # fmt: skip
    def test_what_crosses_is_worth_a_half_or_more_and_nothing_else_is(self, s, e, quarantined, tasks, said) -> None:
        found = information(standing(s, said=said, quarantined=quarantined, tasks=tasks, e=e))
        crosses = found.loss is not None or found.win is not None
        assert 0 <= found.value <= 1
        assert (found.value >= 0.5) == crosses
        assert bool(in_words(found, "it")) == (found.value > 0)


class TestUnderTheReference:
    def epoch(self, losses: int, cohort: int = 1, tasks: int = 2) -> Epoch:
        return Epoch(losses=losses, tasks=min(tasks, losses), share=losses / cohort)

    def prospect(self, losses: int, *, cohort: int = 1, rate: float = 0.137, quarantined: bool = False) -> Prospect:
        return by_epoch(
            epoch=self.epoch(losses, cohort),
            with_loss=self.epoch(losses + 1, cohort),
            rate=rate,
            expected=0.2,
            quarantined=quarantined,
        )

    def test_the_fifth_loss_quarantines(self) -> None:
        assert information(self.prospect(4)).loss is Change.QUARANTINE
        assert information(self.prospect(3)).loss is None

    def test_shared_losses_and_a_high_base_rate_hold_it_back(self) -> None:
        assert information(self.prospect(4, cohort=4)).loss is None, "1.25 losses fall to it"
        assert information(self.prospect(4, rate=0.5062)).loss is None, "0.5062 ** 5 is above 0.01"

    def test_a_win_frees_what_is_kept_out(self) -> None:
        found = information(self.prospect(6, quarantined=True))
        assert (found.loss, found.win) == (None, Change.FREED)


class TestBlindJudging:
    def test_the_answer_is_always_the_same_and_a_tenth_is_blind(self) -> None:
        ids = [UUID(int=n) for n in range(20_000)]
        share = sum(map(judged_blind, ids)) / len(ids)
        assert share == pytest.approx(0.1, abs=0.01)
        assert [judged_blind(pk) for pk in ids[:50]] == [judged_blind(pk) for pk in ids[:50]]
