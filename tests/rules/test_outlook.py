"""What leads a lesson's page, and what it says of the way in and out of quarantine."""

import math
from dataclasses import asdict
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.ledger import LedgerConstants, LedgerRow, replay
from memory.rules.outlook import lead, odds_in_words, would_free, would_quarantine
from memory.rules.quarantine import EvidenceRow, evaluate_reference

CONSTANTS = LedgerConstants()


def trial(**changes):
    """Evidence as the policy `trial` puts it together."""
    s = changes.pop("s", math.log(318))
    return {
        "policy": "trial",
        "constants": {**asdict(CONSTANTS), "weights": {k: str(v) for k, v in CONSTANTS.weights.items()}},
        "odds": math.exp(s),
        "s": s,
        "wins": 20,
        "losses": 14,
        "loss_tasks": 4,
        "enough_to_judge": False,
        "with_it": {"lost": 13, "n": 16, "expected": 4.0},
        "without_it": {"coin": {"lost": 2, "n": 13, "expected": 3.1}},
        "gates": [],
        **changes,
    }


class TestTheLead:
    def test_compares_work_with_it_and_work_without(self) -> None:
        found = lead(trial())
        assert found is not None
        assert found.comparison == (
            "With this lesson 13 of 16 were lost where 4 were expected; when a coin left it out of the same kind of "
            "task, 2 of 13."
        )
        assert found.odds == (
            "The record is 318 times likelier if the lesson multiplies the odds of losing by 3 than if it does nothing."
        )

    def test_warns_where_the_counts_are_few(self) -> None:
        assert lead(trial()).warning.startswith("These are too few servings to judge by eye")
        assert lead(trial(enough_to_judge=True)).warning == ""

    def test_names_both_controls(self) -> None:
        without = {"coin": {"lost": 2, "n": 13, "expected": 3.1}, "quarantine": {"lost": 1, "n": 4, "expected": 0.8}}
        assert lead(trial(without_it=without)).comparison.endswith("2 of 13; while quarantine kept it out, 1 of 4.")

    def test_says_that_there_is_no_control_yet(self) -> None:
        assert lead(trial(without_it={})).comparison.endswith("; it was never left out for comparison yet.")

    def test_counts_one_as_one(self) -> None:
        found = lead(trial(with_it={"lost": 1, "n": 5, "expected": 1.0}))
        assert found.comparison.startswith("With this lesson 1 of 5 was lost where 1 was expected;")

    def test_of_a_ledger_at_zero_accuses_nobody(self) -> None:
        assert lead(trial(s=0.0)).odds == ("Nothing in the record speaks for it multiplying the odds of losing by 3.")

    def test_is_absent_without_rows_and_under_another_policy(self) -> None:
        assert lead(trial(with_it={"lost": 0, "n": 0, "expected": 0.0})) is None
        assert lead({"policy": "reference"}) is None

    @pytest.mark.parametrize(
        ("odds", "words"), [(1.0, "1.0"), (3.26, "3.3"), (148.2, "148"), (12_345.0, "12,345"), (1e30, "over a million")]
    )
    def test_has_short_odds(self, odds: float, words: str) -> None:
        assert odds_in_words(odds) == words


def rows(outcomes: list[int], expected: float) -> list[LedgerRow]:
    return [
        LedgerRow(
            interaction=UUID(int=i),
            credit_seq=i,
            task_digest=str(i % 3),
            weight=Decimal(1),
            loss=loss,
            expected=expected,
        )
        for i, loss in enumerate(outcomes)
    ]


def evidence_of(outcomes: list[int], expected: float):
    ledger = replay(rows(outcomes, expected))
    shown = {"lost": ledger.losses, "n": len(ledger.points), "expected": ledger.expected}
    return trial(s=ledger.s, loss_tasks=ledger.loss_tasks, with_it=shown)


def number(words: str) -> int:
    """The count of rows that a sentence asks for."""
    return int(words.split("About ")[1].split()[0])


class TestWhatWouldFreeIt:
    def test_names_the_occasions_the_odds_and_the_wins(self) -> None:
        assert would_free(trial()) == (
            "A win on probation, a loss of the same kind of work without it, or a correction frees it once its odds, "
            "318 : 1, are at 50 : 1 or below. About 5 wins in a row by a caller would do, each as hard as the work "
            "so far."
        )

    def test_needs_but_an_occasion_where_the_odds_have_fallen(self) -> None:
        assert would_free(trial(s=math.log(40))) == (
            "Its odds are at 50 : 1 or below already; a win on probation, a loss of the same kind of work without it, "
            "or a correction frees it now."
        )

    @given(losses=st.integers(9, 14), expected=st.sampled_from([0.1, 0.2, 0.3]))
    def test_counts_the_wins_that_the_ledger_needs(self, losses: int, expected: float) -> None:
        found = evidence_of([1] * losses, expected)
        wins = number(would_free(found))
        assert replay(rows([1] * losses + [0] * wins, expected)).odds <= CONSTANTS.release_odds
        assert replay(rows([1] * losses + [0] * (wins - 1), expected)).odds > CONSTANTS.release_odds

    def test_is_a_person_where_a_person_quarantined_it(self) -> None:
        assert would_free(trial(), by_person=True) == "A person quarantined it, and only a person frees it."

    def test_leaves_out_a_count_that_callers_cannot_give(self) -> None:
        constants = {**trial()["constants"], "weights": {"caller": "0"}}
        assert would_free(trial(constants=constants)).endswith("at 50 : 1 or below.")

    def test_is_a_win_under_reference(self) -> None:
        assert would_free({"policy": "reference"}).startswith("A win on a probation sample frees it")


class TestWhatWouldQuarantineIt:
    def test_names_the_odds_the_tasks_and_the_losses(self) -> None:
        assert would_quarantine(trial(s=math.log(20))) == (
            "A loss quarantines it at odds of 200 : 1 or more, with losses on at least 2 tasks; its odds are 20 : 1, "
            "and it was lost on 4 tasks. About 4 losses in a row by a caller would do, each as hard as the work so far."
        )

    @given(losses=st.integers(1, 5), expected=st.sampled_from([0.1, 0.2, 0.3]))
    def test_counts_the_losses_that_the_ledger_needs(self, losses: int, expected: float) -> None:
        more = number(would_quarantine(evidence_of([1] * losses, expected)))
        assert replay(rows([1] * (losses + more), expected)).odds >= CONSTANTS.quarantine_odds
        assert replay(rows([1] * (losses + more - 1), expected)).odds < CONSTANTS.quarantine_odds

    def test_takes_the_higher_bar_after_a_release(self) -> None:
        gates = [{"name": "odds", "value": 318.0, "threshold": 954.0, "passed": False, "words": ""}]
        assert "at odds of 954 : 1 or more" in would_quarantine(trial(gates=gates))

    def test_asks_for_no_more_losses_where_the_odds_suffice(self) -> None:
        assert "About" not in would_quarantine(trial())

    def test_lists_the_conditions_of_reference_that_do_not_hold(self) -> None:
        loss = EvidenceRow(
            interaction=UUID(int=1), task_digest="a", source="caller", reward=Decimal(-1), cohort=1, credit_seq=1
        )
        gates = [asdict(gate) for gate in evaluate_reference([loss], scored=12, rate=0.0759).gates]
        words = would_quarantine({"policy": "reference", "gates": gates})
        assert words.startswith("All four conditions at once quarantine it. Not yet met: 1 loss on 1 task since")
        assert "mean reward" not in words
        assert words.endswith("One win clears the losses before it.")

    def test_says_that_all_conditions_of_reference_hold(self) -> None:
        gates = [{"name": "losses", "value": 6, "threshold": 6, "passed": True, "words": "6 losses."}]
        assert "All of them are met" in would_quarantine({"policy": "reference", "gates": gates})
