"""The policy `trial`: an account of suspicion, its stages, and what the coin is for."""

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.rules.expectation import (
    Expectation,
    Tally,
    baseline,
    expected_loss,
    niche_factor,
    to_stored,
    withheld_expectation,
)
from memory.rules.ledger import (
    LedgerConstants,
    LedgerResult,
    LedgerRow,
    Release,
    Stage,
    StageDecision,
    allows_entry,
    allows_release,
    on_trial,
    replay,
    stage,
    step,
)
from memory.rules.probation import withheld_by_coin, withheld_share

LN10, LN50, LN200 = math.log(10), math.log(50), math.log(200)
CALLER, MACHINE = Decimal("1.0"), Decimal("0.7")


def row(seq: int, loss: int, *, expected: float = 0.2, task: str | None = None, weight: Decimal = CALLER) -> LedgerRow:
    return LedgerRow(
        interaction=UUID(int=seq),
        credit_seq=seq,
        task_digest=f"{seq:064x}" if task is None else task,
        weight=weight,
        loss=loss,
        expected=expected,
    )


def rows(results: str, *, expected: float = 0.2, task: str | None = None) -> list[LedgerRow]:
    """Rows of a caller, oldest first, from a string of L and W; each on a task of its own unless `task` is given."""
    return [row(seq, int(r == "L"), expected=expected, task=task) for seq, r in enumerate(results, start=1)]


def ending_at(s: float, *, tasks: int = 2) -> LedgerResult:
    """An account that ends at exactly `s` nats."""
    return LedgerResult(points=(), s=s, peak=s, losses=tasks, expected=1.0, loss_tasks=tasks)


def after_a_loss(account: LedgerResult, released: Release | None = None) -> StageDecision:
    return stage(account, quarantined=False, entry_allowed=True, release_allowed=False, released=released)


def after_good_news(account: LedgerResult) -> StageDecision:
    return stage(account, quarantined=True, entry_allowed=False, release_allowed=True)


# --- worked numbers


@pytest.mark.parametrize(
    ("expected", "loss", "win"),
    [
        (0.05, 1.0033, -0.0953),
        (0.10, 0.9163, -0.1823),
        (0.20, 0.7621, -0.3365),
        (0.30, 0.6286, -0.4700),
        (0.50, 0.4055, -0.6931),
        (0.95, 0.0339, -1.0647),
    ],
)
def test_a_loss_counts_more_the_less_it_was_expected(expected, loss, win):
    assert step(weight=1.0, loss=1, expected=expected) == pytest.approx(loss, abs=5e-5)
    assert step(weight=1.0, loss=0, expected=expected) == pytest.approx(win, abs=5e-5)


@pytest.mark.parametrize(
    ("expected", "caller", "machine"),
    [(0.05, 6, 8), (0.1, 6, 9), (0.2, 7, 10), (0.3, 9, 13), (0.5, 14, 19), (0.7, 24, 34)],
)
def test_straight_losses_to_quarantine(expected, caller, machine):
    for weight, needed in ((CALLER, caller), (MACHINE, machine)):
        losses = [row(seq, 1, expected=expected, weight=weight) for seq in range(1, needed + 1)]
        assert after_a_loss(replay(losses)).entered
        assert not after_a_loss(replay(losses[:-1])).entered


def test_a_lucky_win_is_paid_for_but_wipes_nothing_out():
    account = replay(rows("LLWLLLLLL"))
    assert [point.s for point in account.points] == pytest.approx(
        [0.7621, 1.5243, 1.1878, 1.9499, 2.7121, 3.4742, 4.2364, 4.9985, 5.7606], abs=6e-5
    )


def test_a_lucky_win_delays_each_stage():
    history = rows("LLWLLLLLL")
    stages = [after_a_loss(replay(history[:n])).stage for n in range(1, 10)]
    assert stages == [Stage.ACTIVE] * 4 + [Stage.TRIAL] * 4 + [Stage.QUARANTINED]


def test_a_run_on_one_task_stays_on_trial():
    decision = after_a_loss(replay(rows("LLWLLLLLL", task="aa" * 32)))
    assert (decision.stage, decision.entered) == (Stage.TRIAL, False)
    assert [gate.passed for gate in decision.gates] == [True, False, True]


def test_a_lesson_is_cleared_by_controls():
    history = rows("L" * 10 + "W" * 5)
    suspected = replay(history)
    assert suspected.s == pytest.approx(5.9390, abs=5e-5)
    assert after_a_loss(replay(history[:10])).entered
    factor = niche_factor(21, 6)
    assert factor == pytest.approx(24 / 9)
    odds = 0.2 / 0.8 * factor
    excused = replay([replace(r, expected=odds / (1 + odds)) for r in history])
    assert odds / (1 + odds) == pytest.approx(0.4)
    assert excused.s == pytest.approx(2.1693, abs=5e-5)
    decision = after_good_news(excused)
    assert (decision.left, decision.stage) == (True, Stage.ACTIVE)


def test_a_lesson_is_confirmed_by_controls():
    assert niche_factor(3, 6) == 1.0
    account = replay(rows("L" * 10 + "W" * 5))
    decision = after_good_news(account)
    assert (decision.left, decision.stage) == (False, Stage.QUARANTINED)


# --- the account


def test_an_account_without_rows_is_empty():
    account = replay([])
    assert (account.s, account.peak, account.losses, account.expected, account.loss_tasks) == (0, 0, 0, 0, 0)
    assert account.odds == 1.0
    assert account.points == ()


def test_an_account_never_falls_below_zero():
    account = replay(rows("WWWWL"))
    assert [point.s for point in account.points[:4]] == [0.0] * 4
    assert account.s == step(weight=1.0, loss=1, expected=0.2)


def test_an_account_counts_what_was_lost_and_what_was_to_be_expected():
    account = replay(rows("LLWLLLLLL", expected=0.25))
    assert (account.losses, account.expected, account.loss_tasks) == (8, 2.25, 8)
    assert account.peak == account.s == max(point.s for point in account.points)


def test_the_peak_outlasts_the_wins_that_follow_it():
    account = replay(rows("LLLWWW"))
    assert account.peak == account.points[2].s > account.s


def test_the_odds_are_readable():
    assert replay(rows("LL")).odds == pytest.approx((3 / 1.4) ** 2)


def test_the_most_incriminating_stretch_begins_after_the_last_zero():
    account = replay(rows("LWWWLLW"))
    assert [point.row.credit_seq for point in account.stretch] == [5, 6, 7]
    assert replay(rows("LL")).stretch == replay(rows("LL")).points
    assert replay(rows("LWWW")).stretch == ()


def test_only_the_last_sixty_four_rows_are_read():
    old = rows("L" * 30)
    recent = [row(seq, seq % 3 == 0) for seq in range(100, 164)]
    assert replay(old + recent) == replay(recent)
    assert len(replay(old + recent).points) == 64


def test_rows_without_weight_take_no_place_among_the_last_sixty_four():
    losses = rows("L" * 64)
    silent = [row(seq, 0, weight=Decimal(0)) for seq in range(100, 300)]
    assert replay(losses + silent) == replay(losses)


def test_two_rows_cannot_share_a_place():
    with pytest.raises(ValueError, match="its own credit_seq"):
        replay([row(1, 1), row(1, 0)])


@pytest.mark.parametrize(
    "wrong", [{"loss": 2}, {"loss": -1}, {"expected": 0.0}, {"expected": 1.0}, {"weight": -0.1}, {"weight": 1.1}]
)
def test_a_step_needs_a_scored_row(wrong):
    with pytest.raises(ValueError, match="Not a scored row"):
        step(**({"weight": 1.0, "loss": 1, "expected": 0.2} | wrong))


def test_a_step_of_no_weight_is_nothing():
    assert step(weight=0, loss=1, expected=0.2) == 0.0
    assert step(weight=Decimal(0), loss=0, expected=0.2) == 0.0


def test_too_few_servings_to_judge_means_fewer_than_five_expected_losses_or_wins():
    assert not replay(rows("L" * 24, expected=0.2)).enough_to_judge
    assert replay(rows("L" * 25, expected=0.2)).enough_to_judge
    assert not replay(rows("L" * 25, expected=0.85)).enough_to_judge


# --- stages


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        (0.0, Stage.ACTIVE),
        (LN10 - 1e-8, Stage.ACTIVE),
        (LN10 - 1e-10, Stage.TRIAL),
        (LN10, Stage.TRIAL),
        (LN200 - 1e-8, Stage.TRIAL),
        (LN200 - 1e-10, Stage.QUARANTINED),
        (LN200, Stage.QUARANTINED),
        (60.0, Stage.QUARANTINED),
    ],
)
def test_a_lesson_in_service_stands_where_its_odds_put_it(s, expected):
    assert after_a_loss(ending_at(s)).stage is expected


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        (60.0, Stage.QUARANTINED),
        (LN50 + 1e-8, Stage.QUARANTINED),
        (LN50 + 1e-10, Stage.TRIAL),
        (LN50, Stage.TRIAL),
        (LN10, Stage.TRIAL),
        (LN10 - 1e-8, Stage.ACTIVE),
        (0.0, Stage.ACTIVE),
    ],
)
def test_a_released_lesson_is_still_on_trial_while_its_odds_say_so(s, expected):
    assert after_good_news(ending_at(s)).stage is expected


def test_the_thresholds_are_ten_fifty_and_two_hundred():
    assert pytest.approx([2.302585, 3.912023, 5.298317], abs=5e-7) == [LN10, LN50, LN200]
    constants = LedgerConstants()
    assert (constants.trial_odds, constants.release_odds, constants.quarantine_odds) == (10, 50, 200)


def test_only_a_loss_quarantines():
    decision = stage(ending_at(50.0), quarantined=False, entry_allowed=False, release_allowed=True)
    assert (decision.stage, decision.entered) == (Stage.TRIAL, False)


def test_losses_on_one_task_alone_do_not_quarantine():
    assert not after_a_loss(ending_at(50.0, tasks=1)).entered
    assert after_a_loss(ending_at(50.0, tasks=2)).entered


def test_a_low_account_alone_does_not_release():
    decision = stage(ending_at(0.0), quarantined=True, entry_allowed=True, release_allowed=False)
    assert (decision.stage, decision.left) == (Stage.QUARANTINED, False)


def test_a_change_is_named_once():
    entering = after_a_loss(ending_at(6.0))
    assert (entering.entered, entering.left) == (True, False)
    leaving = after_good_news(ending_at(1.0))
    assert (leaving.entered, leaving.left) == (False, True)


@pytest.mark.parametrize(
    ("exposure", "loss", "enters", "leaves"),
    [
        ("served", 1, True, False),
        ("served", 0, False, False),
        ("probation", 1, True, False),
        ("probation", 0, False, True),
        ("withheld_trial", 1, False, True),
        ("withheld_trial", 0, False, False),
        ("withheld_quarantine", 1, False, True),
        ("withheld_quarantine", 0, False, False),
        ("served", None, False, False),
        ("probation", None, False, False),
        ("withheld_trial", None, False, False),
    ],
)
def test_which_row_may_move_a_lesson(exposure, loss, enters, leaves):
    assert allows_entry(exposure=exposure, weight=CALLER, loss=loss) is enters
    assert allows_release(exposure=exposure, weight=CALLER, loss=loss) is leaves


@pytest.mark.parametrize("exposure", ["served", "probation", "withheld_trial", "withheld_quarantine"])
@pytest.mark.parametrize("loss", [0, 1])
def test_a_row_without_weight_moves_no_lesson(exposure, loss):
    nothing = Decimal(0)
    assert not allows_entry(exposure=exposure, weight=nothing, loss=loss)
    assert not allows_release(exposure=exposure, weight=nothing, loss=loss)
    assert not allows_release(exposure=exposure, weight=nothing, loss=loss, weight_before=nothing)


@pytest.mark.parametrize("exposure", ["served", "probation", "withheld_trial", "withheld_quarantine"])
def test_a_correction_may_release(exposure):
    nothing = Decimal(0)
    assert allows_release(exposure=exposure, weight=CALLER, loss=0, weight_before=CALLER)
    assert allows_release(exposure=exposure, weight=nothing, loss=None, weight_before=CALLER)
    assert allows_release(exposure=exposure, weight=MACHINE, loss=1, weight_before=nothing)


def test_an_unknown_exposure_is_refused():
    with pytest.raises(ValueError, match="served, probation, withheld_trial, withheld_quarantine"):
        allows_entry(exposure="shown", weight=CALLER, loss=1)
    with pytest.raises(ValueError, match="Unknown exposure"):
        allows_release(exposure="shown", weight=CALLER, loss=1, weight_before=CALLER)


def test_a_lesson_released_to_trial_is_tested_until_a_later_row_finds_it_below_ten_to_one():
    account = replay(rows("LW"))
    assert account.s < LN10
    assert on_trial(account, Release(credit_seq=2, s=account.s))
    assert not on_trial(account, Release(credit_seq=1, s=account.s))
    assert not on_trial(account)


def test_a_lesson_released_to_trial_without_rows_is_tested():
    assert on_trial(replay([]), Release(credit_seq=7, s=0.0))


def test_a_lesson_released_to_trial_stays_on_trial_while_its_odds_say_so():
    account = replay(rows("LLLLW"))
    assert account.s >= LN10
    assert on_trial(account, Release(credit_seq=3, s=account.s))


def test_a_lesson_released_to_trial_must_get_three_times_worse_to_be_quarantined_again():
    at_release = 6.0
    released = Release(credit_seq=1, s=at_release)
    assert not after_a_loss(ending_at(at_release + math.log(3) - 1e-8), released).entered
    assert after_a_loss(ending_at(at_release + math.log(3) - 1e-10), released).entered


def test_a_lesson_released_far_below_the_threshold_is_quarantined_at_the_usual_one():
    released = Release(credit_seq=1, s=1.0)
    assert not after_a_loss(ending_at(LN200 - 1e-8), released).entered
    assert after_a_loss(ending_at(LN200), released).entered


def test_the_gates_of_entry_can_be_read_by_a_person():
    decision = after_a_loss(replay(rows("LLWLLLLLL")))
    assert [(gate.name, gate.passed) for gate in decision.gates] == [
        ("odds", True),
        ("loss_tasks", True),
        ("loss", True),
    ]
    assert [gate.words for gate in decision.gates] == [
        "Its record is 318 times likelier if it multiplies the odds of losing by 3 than if it does nothing. "
        "At least 200 times is needed.",
        "Different tasks lost with it: 8; at least 2 are needed.",
        "The outcome just credited is an eligible loss with it.",
    ]
    assert decision.gates[0].value == pytest.approx(317.55, abs=0.01)
    assert decision.gates[0].threshold == pytest.approx(200)
    assert (decision.gates[2].value, decision.gates[2].threshold) == (1.0, 1.0)


def test_the_gates_of_release_can_be_read_by_a_person():
    decision = stage(ending_at(math.log(120.4)), quarantined=True, entry_allowed=False, release_allowed=False)
    assert [gate.name for gate in decision.gates] == ["release_odds", "occasion"]
    assert (decision.gates[1].value, decision.gates[1].threshold) == (0.0, 1.0)
    assert [gate.words for gate in decision.gates] == [
        "Its record is 120 times likelier if it multiplies the odds of losing by 3 than if it does nothing. "
        "At most 50 times frees it.",
        "Only a win on probation, a loss without it or a correction frees it; the latest event is none.",
    ]


def test_the_words_name_a_threshold_that_a_release_has_raised():
    words = after_a_loss(ending_at(6.0), Release(credit_seq=1, s=6.0)).gates[0].words
    assert words.endswith("At least 1,210 times is needed, 3 times the odds at its release.")


def test_small_and_huge_odds_stay_readable():
    assert "is 1.0 times" in after_a_loss(ending_at(0.0)).gates[0].words
    assert "is 9.9 times" in after_a_loss(ending_at(math.log(9.94))).gates[0].words
    assert "is 10 times" in after_a_loss(ending_at(math.log(10.4))).gates[0].words
    assert "is 999,999 times" in after_a_loss(ending_at(math.log(999_999))).gates[0].words
    assert "is over a million times" in after_a_loss(ending_at(math.log(1_000_001))).gates[0].words


@pytest.mark.parametrize(
    "wrong",
    [
        {"odds_ratio": 1.0},
        {"relapse_odds": 0.5},
        {"window": 0},
        {"loss_tasks": 0},
        {"trial_odds": 1.0},
        {"trial_odds": 200.0},
        {"release_odds": 200.0},
        {"release_odds": 0.5},
        {"weights": {"caller": Decimal(1)}},
        {"weights": dict.fromkeys(("caller", "machine", "attributed", "self_curriculum", "unknown"), Decimal(2))},
    ],
)
def test_constants_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must exceed|must lie|are needed"):
        LedgerConstants(**wrong)


def test_constants_may_lie_at_their_limits():
    bare = LedgerConstants(relapse_odds=1.0, window=1, loss_tasks=1, trial_odds=1.5, release_odds=1.5)
    assert replay(rows("WL"), bare).s == step(weight=1.0, loss=1, expected=0.2)


def test_constants_can_be_a_key():
    assert hash(LedgerConstants()) == hash(LedgerConstants())
    assert LedgerConstants() == LedgerConstants()


def test_the_weights_of_the_judges():
    assert LedgerConstants().weights == {
        "caller": Decimal("1.0"),
        "machine": Decimal("0.7"),
        "self_curriculum": Decimal("0.5"),
        "attributed": 0,
        "unknown": 0,
    }


# --- properties of the account

weights = st.sampled_from([Decimal("1.0"), Decimal("0.7"), Decimal("0.5")])
expectations = st.floats(0.05, 0.95)
tasks = st.sampled_from(["aa" * 32, "bb" * 32, "cc" * 32])


@st.composite
def histories(draw: st.DrawFn, max_size: int = 90) -> list[LedgerRow]:
    drawn = draw(st.lists(st.tuples(st.integers(0, 1), expectations, tasks, weights), max_size=max_size))
    return [row(seq, loss, expected=e, task=t, weight=w) for seq, (loss, e, t, w) in enumerate(drawn, start=1)]


@given(histories(max_size=64))
def test_replaying_equals_running(history):
    s = 0.0
    for number, current in enumerate(history, start=1):
        s = max(0.0, s + step(weight=current.weight, loss=current.loss, expected=current.expected))
        assert replay(history[:number]).s == s
    assert [point.s for point in replay(history).points] == [replay(history[: n + 1]).s for n in range(len(history))]


@given(histories(), st.data())
def test_the_order_in_which_rows_are_read_changes_nothing(history, data):
    assert replay(data.draw(st.permutations(history))) == replay(history)


@given(histories(), st.integers(0, 1), expectations)
def test_a_row_of_weight_zero_changes_nothing(history, loss, expected):
    silent = row(1_000, loss, expected=expected, weight=Decimal(0))
    assert replay([*history, silent]) == replay(history)


@given(histories(max_size=63), expectations, weights)
def test_a_win_lowers_the_account_by_exactly_its_step_and_not_below_zero(history, expected, weight):
    before = replay(history).s
    after = replay([*history, row(1_000, 0, expected=expected, weight=weight)]).s
    assert after == max(0.0, before + step(weight=weight, loss=0, expected=expected))
    assert after <= before


@given(histories(max_size=63), expectations, weights)
def test_a_loss_always_raises_the_account(history, expected, weight):
    before = replay(history).s
    assert replay([*history, row(1_000, 1, expected=expected, weight=weight)]).s > before


@given(histories())
def test_the_account_of_the_last_rows_never_exceeds_the_account_of_all(history):
    assert replay(history, LedgerConstants(window=20)).s <= replay(history, LedgerConstants(window=10_000)).s + 1e-12


@given(histories(), st.floats(1.0, 5.0))
def test_a_higher_expectation_never_raises_the_account(history, factor):
    excuses = [replace(r, expected=min(0.99, r.expected * factor)) for r in history]
    assert replay(excuses).s <= replay(history).s + 1e-9


@given(st.floats(0.05, 0.95), weights)
def test_a_row_of_an_innocent_lesson_is_a_fair_bet_at_most(expected, weight):
    loss = math.exp(step(weight=weight, loss=1, expected=expected))
    win = math.exp(step(weight=weight, loss=0, expected=expected))
    assert expected * loss + (1 - expected) * win <= 1 + 1e-12


@given(histories(), st.booleans(), st.booleans(), st.booleans())
def test_a_stage_is_what_its_gates_say(history, quarantined, entry, release):
    decision = stage(replay(history), quarantined=quarantined, entry_allowed=entry, release_allowed=release)
    passed = all(gate.passed for gate in decision.gates)
    assert decision.entered == (passed and not quarantined)
    assert decision.left == (passed and quarantined)
    assert (decision.stage is Stage.QUARANTINED) == (quarantined != passed)


def test_an_innocent_lesson_alarms_in_fewer_than_five_of_a_thousand_rows():
    coin = random.Random(20)
    innocent = [row(seq, int(coin.random() < 0.2)) for seq in range(1, 60_001)]
    account = replay(innocent, LedgerConstants(window=len(innocent)))
    alarms = sum(point.row.loss == 1 and point.s >= LN200 for point in account.points)
    assert 0 < alarms < 0.005 * len(innocent)


# --- a whole store, by definition: every sum is counted again from the log each time


@dataclass(frozen=True, kw_only=True)
class Credited:
    """One scored interaction."""

    seq: int
    source: str
    task: str
    cohort: tuple[str, ...]
    withheld: tuple[str, ...]
    loss: int
    b: Decimal
    excuses: dict[str, Decimal]  # withheld lesson -> its stored expected loss


@dataclass
class Store:
    """The log of a store, with the sums counted from it."""

    constants: LedgerConstants = field(default_factory=LedgerConstants)
    log: list[Credited] = field(default_factory=list)

    def credit(self, *, source: str, task: str, cohort: Sequence[str], loss: int, withheld: Sequence[str] = ()) -> None:
        judged = [entry for entry in self.log if entry.source == source]
        excuses = {
            lesson: to_stored(self.expectation(lesson, source, task, (), withheld=True).expected_loss)
            for lesson in withheld
        }
        b = baseline(losses=sum(entry.loss for entry in judged), n=len(judged))
        self.log.append(
            Credited(
                seq=len(self.log) + 1,
                source=source,
                task=task,
                cohort=tuple(cohort),
                withheld=tuple(withheld),
                loss=loss,
                b=b,
                excuses=excuses,
            )
        )

    def expectation(
        self, lesson: str, source: str, task: str, cohort: Sequence[str], *, withheld: bool = False
    ) -> Expectation:
        others = [entry for entry in self.log if lesson not in entry.cohort]
        judged = [entry for entry in others if entry.source == source]
        losses = sum(entry.loss for entry in judged)
        on_task = self._tally(entry for entry in others if entry.task == task)
        if withheld:
            return withheld_expectation(losses=losses, n=len(judged), task=on_task)
        peers = [
            self._tally((entry for entry in others if peer in entry.cohort), self.constants.weights)
            for peer in cohort
            if peer != lesson
        ]
        left_out = [e for e in self.log if lesson in e.withheld and self.constants.weights[e.source] > 0]
        niche = Tally(
            observed=Decimal(sum(entry.loss for entry in left_out)),
            expected=sum((entry.excuses[lesson] for entry in left_out), Decimal(0)),
        )
        return expected_loss(losses=losses, n=len(judged), task=on_task, peers=peers, niche=niche)

    def _tally(self, log: Iterable[Credited], weights: Mapping[str, Decimal] | None = None) -> Tally:
        observed = expected = Decimal(0)
        for entry in log:
            weight = Decimal(1) if weights is None else weights[entry.source]
            observed += weight * entry.loss
            expected += weight * entry.b
        return Tally(observed=observed, expected=expected)

    def account(self, lesson: str, sums: "Store | None" = None) -> LedgerResult:
        """The lesson's account over this log, expected with the sums of this or another store."""
        counted = self if sums is None else sums
        return replay(
            LedgerRow(
                interaction=UUID(int=entry.seq),
                credit_seq=entry.seq,
                task_digest=entry.task,
                weight=self.constants.weights[entry.source],
                loss=entry.loss,
                expected=counted.expectation(lesson, entry.source, entry.task, entry.cohort).expected_loss,
            )
            for entry in self.log
            if lesson in entry.cohort
        )


LESSONS = ("A", "B", "C", "D")


@st.composite
def stores(draw: st.DrawFn) -> Store:
    store = Store()
    for _ in range(draw(st.integers(1, 12))):
        lessons = draw(st.permutations(LESSONS))
        shown = draw(st.integers(1, 3))
        store.credit(
            source=draw(st.sampled_from(["caller", "machine", "attributed", "self_curriculum", "unknown"])),
            task=draw(tasks),
            cohort=lessons[:shown],
            withheld=lessons[shown : shown + draw(st.integers(0, 1))],
            loss=draw(st.integers(0, 1)),
        )
    return store


@settings(max_examples=40, deadline=None)
@given(stores())
def test_the_order_of_lessons_inside_a_cohort_changes_nothing(store):
    turned = Store()
    for entry in store.log:
        turned.credit(
            source=entry.source,
            task=entry.task,
            cohort=entry.cohort[::-1],
            withheld=entry.withheld[::-1],
            loss=entry.loss,
        )
    assert [(entry.b, entry.excuses) for entry in turned.log] == [(entry.b, entry.excuses) for entry in store.log]
    for lesson in LESSONS:
        assert turned.account(lesson) == store.account(lesson)


@settings(max_examples=40, deadline=None)
@given(stores(), st.integers(0, 1), tasks)
def test_a_withheld_row_changes_an_account_only_through_the_sums(store, loss, task):
    before = Store(log=list(store.log))
    store.credit(source="caller", task=task, cohort=(), withheld=("A",), loss=loss)
    assert store.account("A", sums=before) == before.account("A")


def test_losses_without_a_lesson_lower_its_account_and_wins_do_not_raise_it():
    def left_out(loss: int) -> Store:
        store = Store()
        together(store, 6)
        for number in range(10):
            store.credit(source="machine", task=f"{number + 500:064x}", cohort=(), withheld=("innocent",), loss=loss)
        return store

    without_coins = Store()
    together(without_coins, 6)
    usual = without_coins.account("innocent").s
    assert left_out(1).account("innocent").s < usual
    assert left_out(0).account("innocent").s == usual


@settings(max_examples=40, deadline=None)
@given(stores(), st.sampled_from(["attributed", "unknown"]), st.integers(0, 1))
def test_a_row_without_weight_changes_an_account_only_through_rate_and_task(store, source, loss):
    before = Store(log=list(store.log))
    store.credit(source=source, task="dd" * 32, cohort=("A", "B"), withheld=("C",), loss=loss)
    for lesson in LESSONS:
        assert store.account(lesson, sums=before) == before.account(lesson)
        earlier = before.expectation(lesson, "caller", "aa" * 32, LESSONS)
        assert store.expectation(lesson, "caller", "aa" * 32, LESSONS) == earlier


@settings(max_examples=40, deadline=None)
@given(stores())
def test_a_lessons_own_rows_never_enter_its_expectation(store):
    flipped = Store(log=[replace(entry, loss=1 - entry.loss) if "A" in entry.cohort else entry for entry in store.log])
    for entry in store.log:
        assert flipped.expectation("A", entry.source, entry.task, entry.cohort) == store.expectation(
            "A", entry.source, entry.task, entry.cohort
        )


def test_a_harmful_peer_excuses_the_lessons_beside_it():
    store = Store()
    for number in range(20):
        store.credit(source="caller", task=f"{number:064x}", cohort=("bad",), loss=1)
        store.credit(source="caller", task=f"{number + 100:064x}", cohort=("good",), loss=0)
    for number in range(8):
        store.credit(source="caller", task=f"{number + 200:064x}", cohort=("bad", "new"), loss=1)
        store.credit(source="caller", task=f"{number + 300:064x}", cohort=("good", "other"), loss=1)
    assert store.account("new").s < store.account("other").s


def together(store: Store, times: int) -> None:
    for number in range(times):
        store.credit(source="caller", task=f"{number:064x}", cohort=("harmful", "innocent"), loss=1)


def test_lessons_that_always_travel_together_cannot_be_told_apart_without_a_coin():
    store = Store()
    together(store, 6)
    harmful, innocent = store.account("harmful"), store.account("innocent")
    assert harmful.s == innocent.s
    assert harmful.s >= LN10


def told_apart(stream: int, most: int = 160) -> tuple[bool, bool, bool]:
    """Two lessons that always travel together, of which one does all the harm.

    Whether the harmful one is quarantined, whether the innocent one ever is, and whether its trial ends.
    """
    store, ids = Store(), {"harmful": UUID(int=1), "innocent": UUID(int=2)}
    together(store, 4)
    quarantined: set[str] = set()
    freed = False
    for number in range(most):
        interaction = UUID(bytes=hashlib.sha256(f"{stream} {number}".encode()).digest()[:16])
        withheld = [lesson for lesson in ids if lesson in quarantined or left_out(store, lesson, ids, interaction)]
        cohort = [lesson for lesson in ids if lesson not in withheld]
        loss = int("harmful" in cohort)
        store.credit(source="caller", task=f"{number:064x}", cohort=cohort, withheld=withheld, loss=loss)
        stages = {lesson: after_a_loss(store.account(lesson)).stage for lesson in cohort if loss}
        quarantined |= {lesson for lesson, found in stages.items() if found is Stage.QUARANTINED}
        freed = freed or store.account("innocent").s < LN10
        if "harmful" in quarantined and freed:
            break
    return "harmful" in quarantined, "innocent" in quarantined, freed


def left_out(store: Store, lesson: str, ids: Mapping[str, UUID], interaction: UUID) -> bool:
    s = store.account(lesson).s
    return s >= LN10 and withheld_by_coin(lesson=ids[lesson], interaction=interaction, share=withheld_share(s))


def test_lessons_that_always_travel_together_are_told_apart_by_the_coin():
    found = [told_apart(stream) for stream in range(20)]
    assert all(harmful and not innocent for harmful, innocent, _ in found)
    assert sum(freed for *_, freed in found) >= 18
