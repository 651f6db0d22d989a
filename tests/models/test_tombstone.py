"""Tombstones as PostgreSQL keeps them: a rejected value without its content."""

import pytest

from tests.models.refusals import Checks, Tables, Uniques
from tests.models.rows import VECTOR, digest, insert, new, run, the
from tests.models.rules import Unique, at_least, digests, links, not_empty, together, words

COLUMNS = {
    "id": "uuid",
    "created_at": "timestamptz",
    "account_id": "uuid",
    "text_sha256": "varchar(64)",
    "embedding": "halfvec",
    "space_id": "uuid",
    "polarity": "jsonb",
    "anchor_macs": "jsonb",
    "signature_version": "int4",
    "mac_key_id": "varchar(16)",
    "reason": "varchar(24)",
    "source_lesson": "uuid",
    "successor_lesson": "uuid",
    "source_interaction": "uuid",
}


class TestTombstone(Tables, Checks, Uniques):
    tables = {"lesson_tombstone": {**links("account_id"), "space_id": {"embedding": VECTOR}}}
    checks = [
        digests("lesson_tombstone", "text_sha256"),
        words(
            "lesson_tombstone",
            "reason",
            "near_duplicate_pruned",
            "quarantined",
            "rejected_by_reviewer",
            "superseded",
        ),
        at_least("lesson_tombstone", "signature_version", 1),
        together("lesson_tombstone", "embedding", {"embedding": VECTOR, "space_id": the("embedding_space")}),
        not_empty("lesson_tombstone", "mac_key_id"),
    ]
    uniques = [
        Unique(
            name="lesson_tombstone_account_text_unique",
            table="lesson_tombstone",
            key=("account_id", "text_sha256"),
            passes=[{"account_id": the("account")}, {"text_sha256": digest}],
        ),
        Unique(
            name="lesson_tombstone_account_text_unique",
            table="lesson_tombstone",
            key=("account_id", "text_sha256"),
            given={"account_id": the("account")},
            passes=[{"account_id": new("account")}, {"account_id": None}, {"text_sha256": digest}],
        ),
    ]


@pytest.mark.usefixtures("database")
def test_a_tombstone_has_these_columns_and_no_other_so_it_has_none_for_text() -> None:
    columns = run(
        "SELECT column_name, udt_name || coalesce('(' || character_maximum_length || ')', '')"
        " FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'lesson_tombstone'"
    )
    assert dict(columns) == COLUMNS


@pytest.mark.usefixtures("database")
def test_a_tombstone_outlives_the_lesson_that_it_remembers() -> None:
    lesson = insert("lesson")["id"]
    insert("lesson_tombstone", source_lesson=lesson, successor_lesson=insert("lesson")["id"])
    run("DELETE FROM lesson")
    assert run("SELECT source_lesson FROM lesson_tombstone") == [(lesson,)]
