"""The policy `reference`: four gates over the losses since the last win."""

from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.bands import band_of
from memory.rules.quarantine import EvidenceRow, ReferenceConstants, ReferenceDecision, evaluate_reference

LOSS = Decimal("-1.0")
REJECTED = Decimal("-0.5")
WIN = Decimal("1.0")
UNSCORED = Decimal(0)

TASK_A = "aa" * 32
TASK_B = "bb" * 32


def row(
    seq: int, reward: Decimal = LOSS, *, task: str = TASK_A, source: str = "caller", cohort: int = 1
) -> EvidenceRow:
    return EvidenceRow(
        interaction=UUID(int=seq), task_digest=task, source=source, reward=reward, cohort=cohort, credit_seq=seq
    )


def run(*rewards: Decimal, tasks: int = 2, cohort: int = 1, source: str = "caller") -> list[EvidenceRow]:
    """Rows newest first from rewards oldest first, taking turns on `tasks` different tasks."""
    rows = [
        row(seq, reward, task=f"{seq % tasks:064x}", cohort=cohort, source=source)
        for seq, reward in enumerate(rewards, start=1)
    ]
    return rows[::-1]


def judge(rows: list[EvidenceRow], scored: int | None = None, rate: float | None = None) -> ReferenceDecision:
    """The decision with the lesson's own band, unless a number of scored servings or a rate is given."""
    scored = len(rows) if scored is None else scored
    return evaluate_reference(rows, scored=scored, rate=band_of(scored).prior if rate is None else rate)


def gates(decision: ReferenceDecision) -> dict[str, bool]:
    return {gate.name: gate.passed for gate in decision.gates}


def test_a_lesson_without_rows_stays():
    decision = evaluate_reference([], scored=0, rate=0.5)
    assert not decision.quarantine
    assert (decision.losses, decision.tasks, decision.share) == (0, 0, 0.0)
    assert decision.p_value is None
    assert decision.epoch_start is None
    assert [gate.value for gate in decision.gates] == [0, 0.0, 0.0, 1.0]
    assert gates(decision) == {"losses": False, "mean_reward": False, "share": False, "base_rate": False}


def test_four_lessons_always_together_are_not_quarantined_by_five_shared_failures():
    decision = judge(run(*[LOSS] * 5, cohort=4), rate=0.0124)
    assert decision.share == 1.25
    assert not decision.quarantine
    assert gates(decision) == {"losses": True, "mean_reward": True, "share": False, "base_rate": True}


def test_four_lessons_always_together_are_not_quarantined_by_six_shared_failures():
    decision = judge(run(*[LOSS] * 6, cohort=4), rate=0.0124)
    assert decision.share == 1.5
    assert not decision.quarantine


def test_a_lesson_that_fails_six_times_alone_is_quarantined():
    decision = judge(run(*[LOSS] * 6))
    assert decision.share == 6.0
    assert decision.quarantine
    assert all(gates(decision).values())


def test_six_failures_in_a_cohort_of_three_are_chance_for_a_lesson_with_six_scored_servings():
    decision = judge(run(*[LOSS] * 6, cohort=3))
    assert decision.rate == 0.1370
    assert decision.p_value == pytest.approx(0.0188, abs=5e-5)
    assert not decision.quarantine
    assert gates(decision) == {"losses": True, "mean_reward": True, "share": True, "base_rate": False}


def test_six_failures_in_a_cohort_of_three_after_six_wins_quarantine():
    decision = judge(run(*[WIN] * 6, *[LOSS] * 6, cohort=3))
    assert decision.rate == 0.0759
    assert decision.p_value == pytest.approx(0.00576, abs=5e-6)
    assert decision.quarantine


def test_six_thirds_count_as_two():
    decision = judge(run(*[LOSS] * 6, cohort=3))
    assert decision.share == pytest.approx(2.0, abs=1e-9)
    assert gates(decision)["share"]


def test_a_probability_that_rounding_alone_lifts_over_the_limit_still_passes():
    assert 0.1**2 > 0.01
    assert judge(run(*[LOSS] * 6, cohort=3), rate=0.1).quarantine


def test_one_win_clears():
    before = run(*[LOSS] * 6)
    assert judge(before).quarantine
    after = judge([row(7, WIN), *before])
    assert not after.quarantine
    assert (after.losses, after.epoch_start) == (0, None)


def test_only_the_losses_since_the_last_win_count():
    decision = judge(run(*[LOSS] * 9, WIN, *[LOSS] * 4))
    assert decision.losses == 4
    assert decision.epoch_start == 11
    assert not decision.quarantine


@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_four_losses_never_quarantine(tasks):
    decision = judge(run(*[LOSS] * 4, tasks=tasks), rate=1e-9)
    assert not decision.quarantine
    assert gates(decision) == {"losses": False, "mean_reward": True, "share": True, "base_rate": True}


def test_five_losses_on_one_task_do_not_quarantine():
    decision = judge(run(*[LOSS] * 5, tasks=1), rate=0.01)
    assert not decision.quarantine
    assert decision.gates[0].threshold == 6


def test_six_losses_on_one_task_do():
    assert judge(run(*[LOSS] * 6, tasks=1), rate=0.01).quarantine


def test_five_losses_on_two_tasks_do():
    decision = judge(run(*[LOSS] * 5, tasks=2), rate=0.01)
    assert decision.quarantine
    assert decision.tasks == 2
    assert decision.gates[0].threshold == 5


def test_one_other_task_among_five_is_enough():
    rows = [row(seq, task=TASK_B if seq == 3 else TASK_A) for seq in range(5, 0, -1)]
    assert judge(rows, rate=0.01).quarantine


def test_rejections_are_just_bad_enough():
    decision = judge(run(*[REJECTED] * 6))
    assert decision.gates[1].value == -0.5
    assert decision.quarantine


def test_mild_losses_are_not_bad_enough():
    decision = judge(run(*[Decimal("-0.49")] * 6))
    assert not decision.quarantine
    assert gates(decision)["mean_reward"] is False


def test_the_mean_reward_is_that_of_the_epoch():
    decision = judge(run(LOSS, WIN, *[Decimal("-0.2")] * 3, *[LOSS] * 3))
    assert decision.gates[1].value == pytest.approx(-0.6)


@pytest.mark.parametrize("source", ["attributed", "self_curriculum", "unknown"])
def test_losses_that_nobody_eligible_judged_move_nothing(source):
    decision = evaluate_reference(run(*[LOSS] * 20, source=source), scored=0, rate=0.01)
    assert (decision.quarantine, decision.losses) == (False, 0)


@pytest.mark.parametrize("source", ["attributed", "self_curriculum", "unknown"])
def test_a_win_that_nobody_eligible_judged_clears_nothing(source):
    rows = [row(9, WIN, source=source), *run(*[LOSS] * 6)]
    assert judge(rows, scored=6).quarantine


def test_a_machines_losses_count_in_full():
    assert judge(run(*[LOSS] * 6, source="machine")).quarantine


def test_a_row_without_reward_neither_counts_nor_clears():
    losses = run(*[LOSS] * 6)
    rows = [row(10, UNSCORED), *losses]
    assert judge(rows, scored=6) == judge(losses)


def test_rows_that_are_not_newest_first_are_refused():
    with pytest.raises(ValueError, match="newest first"):
        judge(run(*[LOSS] * 6)[::-1])
    with pytest.raises(ValueError, match="newest first"):
        judge([row(3), row(3)])


def test_more_losses_than_scored_servings_are_refused():
    with pytest.raises(ValueError, match="cannot be among 5"):
        judge(run(*[LOSS] * 6), scored=5)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.2, 2.0])
def test_a_certain_base_rate_is_refused(rate):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        judge(run(LOSS), rate=rate)


def test_a_cohort_without_the_lesson_is_refused():
    with pytest.raises(ValueError, match="at least the lesson itself"):
        judge([row(1, cohort=0)])


def test_every_gate_can_be_read_by_a_person():
    words = [gate.words for gate in judge(run(*[WIN] * 6, *[LOSS] * 6, cohort=3)).gates]
    assert words == [
        "6 losses on 2 tasks since the last win; 5 on at least 2 tasks, or 6 in all, are needed.",
        "The mean reward of these losses is -1.00; -0.50 or lower is needed.",
        "Divided among the lessons handed out together, 2.00 losses fall to this lesson; 2.00 are needed.",
        "Lessons with 10 to 24 scored servings lose 7.6% of the time, so losing 2.00 in a row by chance has "
        "probability 0.0058; 0.01 or lower is needed.",
    ]


def test_the_words_mind_the_singular():
    words = [gate.words for gate in judge(run(LOSS)).gates]
    assert words[0].startswith("1 loss on 1 task since the last win;")
    assert words[3].startswith("Lessons with 1 scored serving lose 50.6% of the time")


def test_the_words_of_a_lesson_without_losses_claim_nothing():
    words = [gate.words for gate in evaluate_reference([], scored=0, rate=0.5).gates]
    assert words[1].startswith("There is no loss to take a mean reward of;")
    assert words[3].startswith("Lessons without a scored serving")


def test_the_words_of_the_last_band_have_no_upper_end():
    rows = run(LOSS)
    assert judge(rows, scored=250).gates[3].words.startswith("Lessons with 100 or more scored servings lose 1.2%")


def test_the_thresholds_are_constants():
    strict = ReferenceConstants(losses=8, losses_one_task=9, tasks=3, mean_reward=-0.9, share=7.0, p=0.001)
    rows = run(*[LOSS] * 8, tasks=3)
    assert evaluate_reference(rows, scored=8, rate=0.137, constants=strict).quarantine
    assert not evaluate_reference(rows[1:], scored=8, rate=0.137, constants=strict).quarantine
    assert not evaluate_reference(run(*[LOSS] * 8, tasks=2), scored=8, rate=0.137, constants=strict).quarantine


rewards = st.sampled_from([LOSS, REJECTED, UNSCORED, WIN])
histories = st.lists(
    st.builds(
        lambda reward, task, source, cohort: (reward, task, source, cohort),
        rewards,
        st.sampled_from([TASK_A, TASK_B]),
        st.sampled_from(["caller", "machine", "attributed", "self_curriculum", "unknown"]),
        st.integers(1, 6),
    ),
    max_size=30,
)


def from_history(history) -> list[EvidenceRow]:
    return [
        row(seq, reward, task=task, source=source, cohort=cohort)
        for seq, (reward, task, source, cohort) in enumerate(history, start=1)
    ][::-1]


@given(histories, st.floats(0.01, 0.9))
def test_a_quarantine_is_exactly_the_passing_of_all_gates(history, rate):
    decision = evaluate_reference(from_history(history), scored=100, rate=rate)
    assert decision.quarantine == all(gate.passed for gate in decision.gates)
    assert [gate.name for gate in decision.gates] == ["losses", "mean_reward", "share", "base_rate"]


@given(histories, st.floats(0.01, 0.9))
def test_rows_before_the_last_eligible_win_change_nothing(history, rate):
    rows = from_history(history)
    wins = [i for i, r in enumerate(rows) if r.reward > 0 and r.source in ("caller", "machine")]
    cut = rows[: wins[0] + 1] if wins else rows
    assert evaluate_reference(cut, scored=100, rate=rate) == evaluate_reference(rows, scored=100, rate=rate)


@given(histories, st.floats(0.01, 0.9))
def test_ineligible_and_unscored_rows_change_nothing(history, rate):
    rows = from_history(history)
    kept = [r for r in rows if r.source in ("caller", "machine") and r.reward != 0]
    assert evaluate_reference(kept, scored=100, rate=rate) == evaluate_reference(rows, scored=100, rate=rate)


@given(histories, st.floats(0.01, 0.9))
def test_one_more_bad_loss_never_ends_a_quarantine(history, rate):
    rows = from_history(history)
    more = [row(1000, LOSS), *rows]
    if evaluate_reference(rows, scored=100, rate=rate).quarantine:
        assert evaluate_reference(more, scored=100, rate=rate).quarantine


@given(histories, st.floats(0.01, 0.9))
def test_a_win_clears_whatever_came_before(history, rate):
    rows = [row(1000, WIN), *from_history(history)]
    decision = evaluate_reference(rows, scored=100, rate=rate)
    assert (decision.quarantine, decision.losses, decision.share) == (False, 0, 0.0)
