"""Credits and the running sums made of them as PostgreSQL keeps them."""

from uuid import UUID

import pytest

from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import LAST, digest, insert, new, number, run, the
from tests.models.rules import Check, Unique, at_least, digests, links, within, words

SOURCES = ("caller", "machine", "attributed", "self_curriculum", "unknown")
SMALL, LARGE = UUID(int=1), UUID(int=2)


class TestCredit(Tables, Checks, Uniques):
    tables = {"credit": {**links("interaction_id", "account_id"), "outcome_id": {"y": 1}}}
    checks = [
        words("credit", "source", *SOURCES),
        Check(
            name="credit_y_binary",
            table="credit",
            passes=[
                {"y": 0, "outcome_id": the("outcome")},
                {"y": 1, "outcome_id": the("outcome")},
                {"y": None, "outcome_id": None},
            ],
            refused=[
                {"y": 2, "outcome_id": the("outcome")},
                {"y": -1, "outcome_id": the("outcome")},
                {"y": None, "outcome_id": the("outcome")},
                {"y": 0, "outcome_id": None},
                {"y": 1, "outcome_id": None},
                {"y": 2, "outcome_id": None},
            ],
        ),
        within("credit", "weight", [0, "0.7", 1], ["-0.001", "1.001", "NaN"]),
        within("credit", "b", ["0.000000000001", "0.999999999999"], [0, 1, "-0.1", "1.1", "NaN"]),
        digests("credit", "task_digest"),
    ]
    uniques = [
        Unique(
            name="credit_account_credit_seq_unique",
            table="credit",
            key=("account_id", "credit_seq"),
            passes=[{"account_id": the("account")}, {"credit_seq": number}],
        ),
        Unique(
            name="credit_account_credit_seq_unique",
            table="credit",
            key=("account_id", "credit_seq"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"credit_seq": number}],
        ),
    ]


class TestSums(Tables, Checks, Uniques):
    tables = {
        "source_sum": links("account_id"),
        "task_sum": links("account_id"),
        "lesson_sum": links("lesson_id"),
        "lesson_source_sum": links("lesson_id"),
        "lesson_task_sum": links("lesson_id"),
        "lesson_pair_sum": {
            "lesson_id": {"other_id": new("lesson", id=LAST)},
            "other_id": {},
        },
        "withheld_sum": links("lesson_id"),
    }
    checks = [
        words("source_sum", "source", *SOURCES),
        at_least("source_sum", "n", 0),
        at_least("source_sum", "losses", 0),
        words("lesson_source_sum", "source", *SOURCES),
        at_least("lesson_source_sum", "n", 0),
        at_least("lesson_source_sum", "losses", 0),
        words("withheld_sum", "exposure", "withheld_trial", "withheld_quarantine"),
        at_least("withheld_sum", "n", 0),
        Check(
            name="lesson_pair_sum_ordered",
            table="lesson_pair_sum",
            passes=[{"lesson_id": new("lesson", id=SMALL), "other_id": new("lesson", id=LARGE)}],
            refused=[
                {"lesson_id": new("lesson", id=LARGE), "other_id": new("lesson", id=SMALL)},
                {"lesson_id": new("lesson", id=SMALL), "other_id": SMALL},
            ],
        ),
    ]
    uniques = [
        Unique(
            name="source_sum_key_unique",
            table="source_sum",
            key=("account_id", "source"),
            passes=[{"account_id": the("account")}, {"source": "machine"}],
        ),
        Unique(
            name="source_sum_key_unique",
            table="source_sum",
            key=("account_id", "source"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"source": "machine"}],
        ),
        Unique(
            name="task_sum_key_unique",
            table="task_sum",
            key=("account_id", "task_digest"),
            passes=[{"account_id": the("account")}, {"task_digest": digest}],
        ),
        Unique(
            name="task_sum_key_unique",
            table="task_sum",
            key=("account_id", "task_digest"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"task_digest": digest}],
        ),
        Unique(
            name="lesson_source_sum_key_unique",
            table="lesson_source_sum",
            key=("lesson_id", "source"),
            passes=[{"lesson_id": new("lesson")}, {"source": "machine"}],
        ),
        Unique(
            name="lesson_task_sum_key_unique",
            table="lesson_task_sum",
            key=("lesson_id", "task_digest"),
            passes=[{"lesson_id": new("lesson")}, {"task_digest": digest}],
        ),
        Unique(
            name="lesson_pair_sum_key_unique",
            table="lesson_pair_sum",
            key=("lesson_id", "other_id"),
            passes=[{"lesson_id": new("lesson", id=SMALL)}, {"other_id": new("lesson")}],
        ),
        Unique(
            name="withheld_sum_key_unique",
            table="withheld_sum",
            key=("lesson_id", "exposure"),
            passes=[{"lesson_id": new("lesson")}, {"exposure": "withheld_quarantine"}],
        ),
    ]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("table", ["task_sum", "lesson_sum", "lesson_task_sum", "lesson_pair_sum", "withheld_sum"])
def test_a_sum_of_products_of_weight_and_expectation_is_kept_to_the_last_digit(table: str) -> None:
    exact = "123456.123456789012345"
    insert(table, o=exact, e=exact)
    run(f"UPDATE {table} SET o = o - %s, e = e - %s", exact, "123456.123456789012344")
    ((o, e),) = run(f"SELECT o::text, e::text FROM {table}")
    assert (float(o), e) == (0, "0.000000000000001")


@pytest.mark.usefixtures("database")
def test_b_and_the_expected_loss_of_a_withheld_row_keep_twelve_places() -> None:
    insert("credit", b="0.123456789012")
    insert("lesson_usage", expected_loss="0.123456789012", exposure="withheld_trial")
    assert run("SELECT b::text FROM credit") == [("0.123456789012",)]
    assert run("SELECT expected_loss::text FROM lesson_usage") == [("0.123456789012",)]
