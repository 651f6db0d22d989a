"""Preferences and the journal of their changes as PostgreSQL keeps them."""

import pytest
from django.db import DataError, transaction

from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import new, row, run, store, word
from tests.models.rules import (
    Check,
    Journal,
    Unique,
    actors,
    at_least,
    digests,
    each,
    links,
    not_empty,
    shape,
    within,
    words,
)

LIMIT = 16 * 1024  # bytes of JSON, quotes included


def sized(column: str) -> Check:
    """A JSON value of at most 16 KiB; an "é" is two bytes."""
    return Check(
        name=f"refinement_history_{column}_size",
        table="refinement_history",
        passes=each(column, f'"{"x" * (LIMIT - 2)}"'),
        refused=each(column, f'"{"x" * (LIMIT - 1)}"', f'"{"é" * (LIMIT // 2)}"'),
    )


class TestPreference(Tables, Checks, Uniques, Journals):
    tables = {
        "preference": links("account_id"),
        "refinement_history": {**links("preference_id"), "parent_id": {"operation": "rollback"}},
    }
    checks = [
        shape(
            "preference",
            "scope",
            ["global", "project:rockets", "project:0_a.b-c"],
            ["", "Global", "project:", "project:Rockets", "project:a b", "global\n", "user:7"],
        ),
        not_empty("preference", "key"),
        not_empty("preference", "text"),
        within("preference", "confidence", [0, 0.95, 1], [-0.01, 1.01, "NaN"]),
        at_least("preference", "evidence_count", 0),
        at_least("preference", "revision", 1),
        words(
            "refinement_history",
            "operation",
            "apply",
            "rollback",
            beside={"rollback": {"parent_id": new("refinement_history")}},
        ),
        Check(
            name="refinement_history_parent_iff_rollback",
            table="refinement_history",
            passes=[{"operation": "rollback", "parent_id": new("refinement_history")}],
            refused=[{"operation": "rollback"}, {"operation": "apply", "parent_id": new("refinement_history")}],
        ),
        at_least("refinement_history", "expected_version", 1),
        Check(
            name="refinement_history_before_version_at_least",
            table="refinement_history",
            passes=[{"before_version": 1, "after_version": 2}],
            refused=[{"before_version": 0, "after_version": 1}],
        ),
        Check(
            name="refinement_history_after_version_at_least",
            table="refinement_history",
            passes=[{"before_version": 1, "after_version": 2}],
            refused=[{"before_version": -1, "after_version": 0}],
        ),
        Check(
            name="refinement_history_versions_follow",
            table="refinement_history",
            passes=[{"before_version": 7, "after_version": 8}],
            refused=[{"before_version": 7, "after_version": version} for version in (6, 7, 9)],
        ),
        digests("refinement_history", "before_digest"),
        digests("refinement_history", "after_digest"),
        *(sized(column) for column in ("before_json", "after_json", "evidence_json")),
        not_empty("refinement_history", "expected_outcome"),
        actors("refinement_history"),
    ]
    uniques = [
        Unique(
            name="preference_account_scope_key_unique",
            table="preference",
            key=("account_id", "scope", "key"),
            passes=[{"account_id": new("account")}, {"scope": "project:rockets"}, {"key": word}],
        )
    ]
    journals = [Journal(table="refinement_history")]


@pytest.mark.usefixtures("database")
def test_an_expected_outcome_may_have_2048_characters_and_not_one_more() -> None:
    store("refinement_history", row("refinement_history", expected_outcome="é" * 2048))
    with pytest.raises(DataError, match="too long"), transaction.atomic():
        store("refinement_history", row("refinement_history", expected_outcome="é" * 2049))
    assert run("SELECT count(*) FROM refinement_history") == [(1,)]
