"""The tests that every table, check, unique key and journal inherits.

A test class names the rules of its tables and inherits what proves them; `conftest.py` makes one test of each table,
column, value and key:

    class TestScope(Tables, Checks):
        tables = {"account": {}}
        checks = [words("account", "review_policy", "auto", "gated")]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from django.db import IntegrityError

from tests.models.rows import MINIMAL, NOWHERE, Row, insert, row, run, store
from tests.models.rules import Check, Journal, Unique, broken_rule, refused

# Columns that a trigger reads first: what PostgreSQL names when they are missing, NULL or point nowhere.
TRIGGER_SPEAKS_FIRST = {
    ("lesson_embedding", "embedding"): "lesson_embedding_dimension",
    ("lesson_embedding", "space_id"): "lesson_embedding_dimension",
    ("lesson_embedding", "lesson_id"): "lesson_embedding.state",
}

PRIMARY_KEY = """
    SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indisprimary AND i.indrelid = %s::regclass
"""
COLUMN_TYPE = """
    SELECT data_type FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = %s AND column_name = %s
"""


@pytest.mark.usefixtures("database")
class Tables:
    """What holds for every table: its minimal row, required columns, primary key and foreign keys."""

    # table -> foreign key -> what a row with that foreign key must say besides
    tables: Mapping[str, Mapping[str, Row]]

    def test_the_minimal_row_is_stored(self, table: str) -> None:
        columns = row(table)
        assert store(table, columns).keys() >= columns.keys()

    def test_a_required_column_that_is_left_out_is_refused(self, required: tuple[str, str]) -> None:
        table, column = required
        columns = row(table)
        del columns[column]
        with refused(by=TRIGGER_SPEAKS_FIRST.get(required, f"{table}.{column}")):
            store(table, columns)

    def test_a_required_column_that_is_null_is_refused(self, required: tuple[str, str]) -> None:
        table, column = required
        columns = {**row(table), column: None}
        with refused(by=TRIGGER_SPEAKS_FIRST.get(required, f"{table}.{column}")):
            store(table, columns)

    def test_a_second_row_with_the_same_primary_key_is_refused(self, table: str) -> None:
        ((key,),) = run(PRIMARY_KEY, table)
        columns = {**row(table), key: insert(table)[key]}
        with refused(by=f"{table}_pkey"):
            store(table, columns)

    def test_a_foreign_key_to_no_row_is_refused(self, link: tuple[str, str]) -> None:
        table, column = link
        ((kind,),) = run(COLUMN_TYPE, table, column)
        columns = row(table, **{**self.tables[table][column], column: NOWHERE if kind == "uuid" else -1})
        if link in TRIGGER_SPEAKS_FIRST:
            with refused(by=TRIGGER_SPEAKS_FIRST[link]):
                store(table, columns)
            return
        with pytest.raises(IntegrityError, match=rf"Key \({column}\)=\S+ is not present in table") as error:
            store(table, columns)
        assert (broken_rule(error.value) or "").startswith(table[:20])


@pytest.mark.usefixtures("database")
class Checks:
    """What holds for every CHECK."""

    checks: Sequence[Check]

    def test_a_value_that_keeps_a_check_is_stored(self, kept: tuple[str, Row]) -> None:
        table, change = kept
        columns = row(table, **change)
        assert store(table, columns).keys() >= columns.keys()

    def test_a_value_that_breaks_a_check_is_refused_by_its_name(self, broken: tuple[str, str, Row]) -> None:
        name, table, change = broken
        columns = row(table, **change)
        with refused(by=name):
            store(table, columns)


@pytest.mark.usefixtures("database")
class Uniques:
    """What holds for every unique key."""

    uniques: Sequence[Unique]

    def test_a_second_row_with_the_same_key_is_refused(self, unique: Unique) -> None:
        columns = _second_row(unique, {})
        with refused(by=unique.name):
            store(unique.table, columns)

    def test_a_second_row_with_another_key_is_stored(self, let_in: tuple[Unique, Row]) -> None:
        unique, change = let_in
        columns = _second_row(unique, change)
        assert store(unique.table, columns).keys() >= columns.keys()


def _second_row(unique: Unique, change: Row) -> Row:
    """Store a first row; a second one with the same key but for the change."""
    first = insert(unique.table, **unique.given)
    key = {column: first[column] for column in unique.key}
    return row(unique.table, **{**unique.given, **key, **change})


ERASING = "SELECT set_config('sonder.erasure', pg_current_xact_id()::text, true)"
NOT_ERASING = {
    "nothing": "SELECT set_config('sonder.erasure', '', true)",
    "a word": "SELECT set_config('sonder.erasure', 'on', true)",
    "the last transaction": "SELECT set_config('sonder.erasure', (txid_current() - 1)::text, true)",
    "the next transaction": "SELECT set_config('sonder.erasure', (txid_current() + 1)::text, true)",
}


@pytest.mark.usefixtures("database")
class Journals:
    """What holds for every append-only table."""

    journals: Sequence[Journal]

    def test_no_column_of_a_journal_can_be_changed(self, journal: Journal) -> None:
        stored = insert(journal.table, **journal.full)
        for column in stored.keys() - set(journal.may_change):
            with refused(by=journal.name):
                run(f'UPDATE "{journal.table}" SET "{column}" = NULL')

    def test_no_row_of_a_journal_can_be_deleted(self, journal: Journal) -> None:
        insert(journal.table)
        with refused(by=journal.name):
            run(f'DELETE FROM "{journal.table}"')

    @pytest.mark.parametrize("setting", NOT_ERASING.values(), ids=list(NOT_ERASING))
    def test_a_setting_that_names_no_running_erasure_opens_no_journal(self, journal: Journal, setting: str) -> None:
        insert(journal.table)
        run(setting)
        for statement in (f'UPDATE "{journal.table}" SET created_at = now()', f'DELETE FROM "{journal.table}"'):
            with refused(by=journal.name):
                run(statement)

    def test_no_setting_of_the_trigger_library_opens_a_journal(self, journal: Journal) -> None:
        insert(journal.table)
        run(
            "SELECT set_config('pgtrigger.ignore', array_agg(tgname)::text, true) FROM pg_trigger"
            " WHERE tgrelid = %s::regclass AND NOT tgisinternal",
            journal.table,
        )
        with refused(by=journal.name):
            run(f'DELETE FROM "{journal.table}"')

    def test_an_erasure_changes_and_deletes_rows_of_a_journal(self, journal: Journal) -> None:
        insert(journal.table)
        run(ERASING)
        (changed,) = run(f"UPDATE \"{journal.table}\" SET created_at = '2020-01-01Z' RETURNING created_at")
        assert changed[0].year == 2020
        run(f'DELETE FROM "{journal.table}"')
        assert run(f'SELECT count(*) FROM "{journal.table}"') == [(0,)]


def parameters(proofs: type) -> dict[str, dict[str, Any]]:
    """What `proofs` lists, as the parameters of the tests that it inherits: name -> test id -> value."""
    tables = getattr(proofs, "tables", {})
    checks = getattr(proofs, "checks", [])
    uniques = getattr(proofs, "uniques", [])
    return {
        "table": {table: table for table in tables},
        "required": {f"{table}.{column}": (table, column) for table in tables for column in MINIMAL[table]},
        "link": {f"{table}.{column}": (table, column) for table in tables for column in tables[table]},
        "kept": {f"{c.name}:{_label(change)}": (c.table, change) for c in checks for change in c.passes},
        "broken": {f"{c.name}:{_label(change)}": (c.name, c.table, change) for c in checks for change in c.refused},
        "unique": {f"{u.name}:{_label(u.given)}": u for u in uniques},
        "let_in": {f"{u.name}:{_label(u.given)}:{_label(change)}": (u, change) for u in uniques for change in u.passes},
        "journal": {journal.table: journal for journal in getattr(proofs, "journals", [])},
    }


def _label(change: Row) -> str:
    """A test id that is the same in every process."""
    return ",".join(f"{column}={'...' if callable(value) else repr(value)[:30]}" for column, value in change.items())
