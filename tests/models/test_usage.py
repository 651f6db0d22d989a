"""The exposure log and its exemptions as PostgreSQL keeps them."""

import pytest

from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import EARLIER, Row, insert, new, run, the
from tests.models.rules import (
    Check,
    Journal,
    Unique,
    at_least,
    links,
    not_empty,
    proves,
    refused,
    together,
    within,
    words,
)

CREDITED: Row = {
    "credited_outcome_id": the("outcome"),
    "outcome_signal": "accepted",
    "reward": "0.80",
    "outcome_source": "caller",
    "outcome_at": EARLIER,
}
SOURCES = ("caller", "machine", "attributed", "self_curriculum", "unknown")
SIGNALS = ("tests_passed", "used", "copied", "accepted", "edited", "compiled", "rejected", "failed", "retracted")


def credited(check: Check) -> Check:
    """The same check, on rows that an outcome has been credited to."""
    return Check(
        name=check.name,
        table=check.table,
        passes=[{**CREDITED, **change} for change in check.passes],
        refused=[{**CREDITED, **change} for change in check.refused],
    )


class TestUsage(Tables, Checks, Uniques, Journals):
    tables = {
        "lesson_usage": {**links("lesson_id", "interaction_id"), "credited_outcome_id": CREDITED},
        "usage_exemption": links("usage_id", "reviewer_id", "reverts_id"),
    }
    checks = [
        words("lesson_usage", "exposure", "served", "probation", "withheld_trial", "withheld_quarantine"),
        credited(words("lesson_usage", "outcome_source", *SOURCES)),
        credited(words("lesson_usage", "outcome_signal", *SIGNALS)),
        credited(within("lesson_usage", "reward", [-1, 0, 1], ["-1.01", "1.01", "NaN"])),
        at_least("lesson_usage", "rank", 1),
        within("lesson_usage", "weight", [0, "0.7", 1], ["-0.001", "1.001", "NaN"]),
        within("lesson_usage", "expected_loss", ["0.000000000001", "0.999999999999"], [0, 1, "-0.1", "1.1", "NaN"]),
        within("lesson_usage", "probability", [1e-9, 0.5, 1], [0, -0.1, 1.000001, "NaN"]),
        together("lesson_usage", "outcome", CREDITED),
        Check(
            name="lesson_usage_withheld_has_expectation",
            table="lesson_usage",
            passes=[
                {"exposure": "withheld_trial", "credit_seq": 1, "weight": 0, "expected_loss": "0.2"},
                {"exposure": "withheld_quarantine", "credit_seq": None},
                {"exposure": "served", "credit_seq": 1},
                {"exposure": "probation", "credit_seq": 1},
            ],
            refused=[
                {"exposure": "withheld_trial", "credit_seq": 1, "weight": 0},
                {"exposure": "withheld_quarantine", "credit_seq": 1, "weight": 1},
            ],
        ),
        not_empty("usage_exemption", "reason"),
    ]
    uniques = [
        Unique(
            name="lesson_usage_lesson_interaction_unique",
            table="lesson_usage",
            key=("lesson_id", "interaction_id"),
            passes=[{"lesson_id": new("lesson")}, {"interaction_id": new("interaction")}],
        ),
        # An exemption is taken back once.
        Unique(
            name="usage_exemption_reverts_id_key",
            table="usage_exemption",
            key=("reverts_id",),
            given={"reverts_id": the("usage_exemption")},
            passes=[{"reverts_id": None}],
        ),
    ]
    journals = [Journal(table="usage_exemption")]


EXPECTATION = ("expected_loss", "source_rate", "task_factor", "peer_factor", "niche_factor")


@pytest.mark.usefixtures("database")
@proves("lesson_usage_expectation_fixed")
@pytest.mark.parametrize("column", EXPECTATION)
def test_what_a_row_was_expected_to_lose_is_set_once_and_never_changes(column: str) -> None:
    insert("lesson_usage")
    run(f"UPDATE lesson_usage SET {column} = 0.25, weight = 1")
    run(f"UPDATE lesson_usage SET {column} = 0.25, weight = 0.5")
    for value in ("0.5", "NULL"):
        with refused(by="lesson_usage_expectation_fixed"):
            run(f"UPDATE lesson_usage SET {column} = {value}")
    assert run("SELECT weight::text FROM lesson_usage") == [("0.500",)]
