"""No rule of the database without a proof: what the models and PostgreSQL hold is what the test classes list."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db.models import Field, ForeignKey, GeneratedField, Model
from django.db.models.fields import NOT_PROVIDED

from tests import models as package
from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import MINIMAL, run
from tests.models.rules import PROVEN

MODELS: list[type[Model]] = list(apps.get_app_config("memory").get_models())
TABLES = {model._meta.db_table for model in MODELS}
# A trigger fills them from the lesson, whatever a statement says.
FILLED_BY_TRIGGER = {
    ("lesson_embedding", "state"),
    ("lesson_embedding", "reviewed"),
    ("lesson_embedding", "account_id"),
}
# PostgreSQL names the unique keys of single columns itself; the models do not know the names.
NAMED_BY_POSTGRESQL = "_key"
# Figures that can be computed again, and rows that say by another name when they began.
WITHOUT_TIME_OF_RECORD = {
    *(
        "source_sum",
        "task_sum",
        "lesson_sum",
        "lesson_source_sum",
        "lesson_task_sum",
        "lesson_pair_sum",
        "withheld_sum",
    ),
    *("credit", "lesson_standing", "band_rate", "session_turn_claim", "job_run"),
}


@pytest.fixture(autouse=True, scope="module")
def every_proof_is_loaded() -> None:
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("test_"):
            importlib.import_module(f"{package.__name__}.{module.name}")


def rules_proven() -> set[str]:
    """The names of all checks, unique keys, journals and triggers that some test proves."""
    checks = {check.name for proof in Checks.__subclasses__() for check in proof.checks}
    uniques = {unique.name for proof in Uniques.__subclasses__() for unique in proof.uniques}
    journals = {journal.name for proof in Journals.__subclasses__() for journal in proof.journals}
    return checks | uniques | journals | PROVEN


def fields() -> Iterator[tuple[str, "Field[object, object]"]]:
    """Every column that a statement may give: its table and its field."""
    for model in MODELS:
        for field in model._meta.concrete_fields:
            if not isinstance(field, GeneratedField) and field.get_internal_type() != "BigAutoField":
                yield model._meta.db_table, field


def in_database(question: str) -> set[tuple[str, ...]]:
    """Rows of the catalogue about the tables of the models."""
    return {tuple(found) for found in run(question, list(TABLES))}


def test_every_table_has_a_minimal_row_and_one_test_class() -> None:
    listed = Counter(table for proof in Tables.__subclasses__() for table in proof.tables)
    assert listed == Counter(TABLES)
    assert set(MINIMAL) == TABLES | {"auth_user"}


def test_every_proof_holds_both_what_is_let_in_and_what_is_refused() -> None:
    checks = [check for proof in Checks.__subclasses__() for check in proof.checks]
    uniques = [unique for proof in Uniques.__subclasses__() for unique in proof.uniques]
    assert [check.name for check in checks if not (check.passes and check.refused)] == []
    assert [unique.name for unique in uniques if not (unique.key and unique.passes)] == []


def test_every_constraint_and_trigger_of_the_models_is_proven_and_every_proof_is_of_one() -> None:
    constraints = {rule.name for model in MODELS for rule in model._meta.constraints}
    triggers = {trigger.name for model in MODELS for trigger in getattr(model._meta, "triggers", [])}
    by_postgresql = {name for name in rules_proven() if name.endswith(NAMED_BY_POSTGRESQL)}
    assert rules_proven() - by_postgresql == constraints | triggers


@pytest.mark.django_db
def test_every_check_and_unique_key_in_postgresql_is_proven() -> None:
    checks = in_database(
        "SELECT conname FROM pg_constraint WHERE contype IN ('c', 'x') AND conrelid::regclass::text = ANY(%s)"
    )
    keys = in_database(
        "SELECT indexrelid::regclass::text FROM pg_index"
        " WHERE indisunique AND NOT indisprimary AND indrelid::regclass::text = ANY(%s)"
    )
    triggers = {trigger.name for model in MODELS for trigger in getattr(model._meta, "triggers", [])}
    assert {name for (name,) in checks | keys} == rules_proven() - triggers


@pytest.mark.django_db
def test_every_trigger_in_postgresql_is_one_of_the_models_and_is_enabled() -> None:
    expected = {
        (model._meta.db_table, trigger.get_pgid(model), "O")
        for model in MODELS
        for trigger in getattr(model._meta, "triggers", [])
    }
    found = in_database(
        "SELECT tgrelid::regclass::text, tgname, tgenabled::text FROM pg_trigger"
        " WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY(%s)"
    )
    assert found == expected


def test_a_minimal_row_holds_exactly_the_columns_that_the_models_require() -> None:
    required = {
        (table, field.column) for table, field in fields() if not field.null and field.db_default is NOT_PROVIDED
    }
    given = {(table, column) for table in TABLES for column in MINIMAL[table]}
    assert given == required - FILLED_BY_TRIGGER


@pytest.mark.django_db
def test_a_minimal_row_holds_exactly_the_columns_that_postgresql_requires() -> None:
    required = in_database(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND table_name = ANY(%s) AND is_nullable = 'NO' AND column_default IS NULL"
        " AND is_identity = 'NO' AND is_generated = 'NEVER'"
    )
    given = {(table, column) for table in TABLES for column in MINIMAL[table]}
    assert given == required - FILLED_BY_TRIGGER


@pytest.mark.django_db
def test_every_foreign_key_is_proven_and_what_journals_name_by_bare_uuid_has_none() -> None:
    proven = {
        (table, column) for proof in Tables.__subclasses__() for table in proof.tables for column in proof.tables[table]
    }
    models = {(table, field.column) for table, field in fields() if isinstance(field, ForeignKey)}
    database = in_database(
        "SELECT c.conrelid::regclass::text, a.attname FROM pg_constraint c"
        " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey)"
        " WHERE c.contype = 'f' AND c.conrelid::regclass::text = ANY(%s)"
    )
    assert proven == models - FILLED_BY_TRIGGER
    assert models == database


@pytest.mark.django_db
def test_every_name_of_a_rule_starts_with_its_table_so_that_an_error_says_where() -> None:
    rules = in_database(
        "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE conrelid::regclass::text = ANY(%s)"
        " AND contype <> 't'"  # a deferred trigger, which has the name that its library gives it
    )
    # Django shortens the table in a foreign key's name where the whole would pass PostgreSQL's 63 characters.
    assert [rule for table, rule in rules if not rule.startswith(table[:20])] == []
    declared = {(model._meta.db_table, rule.name) for model in MODELS for rule in model._meta.constraints}
    assert [rule for table, rule in declared if not rule.startswith(f"{table}_")] == []


@pytest.mark.django_db
def test_every_time_has_a_zone() -> None:
    without = in_database(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND table_name = ANY(%s) AND data_type IN ('timestamp without time zone', 'time without time zone')"
    )
    assert without == set()


@pytest.mark.django_db
def test_every_time_of_record_is_set_by_the_database() -> None:
    times = "table_name = ANY(%s) AND column_name IN ('created_at', 'recorded_at')"
    columns = f"SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() AND {times}"
    recorded = in_database(columns)
    assert in_database(f"{columns} AND is_nullable = 'NO' AND column_default = 'statement_timestamp()'") == recorded
    assert TABLES - {table for (table,) in recorded} == WITHOUT_TIME_OF_RECORD
