"""`doctor` misses whatever the migrations made and somebody took away."""

from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from memory.models.sql import execute
from memory.services import schema
from memory.services.doctor import examine

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    """DDL is transactional: each test's damage ends with it."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_a_migrated_store_misses_nothing() -> None:
    assert schema.missing() == []


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DROP TRIGGER pgtrigger_outcome_append_only_{outcome} ON outcome", "outcome: trigger outcome_append_only"),
        (
            "ALTER TABLE outcome DISABLE TRIGGER pgtrigger_outcome_append_only_{outcome}",
            "outcome: trigger outcome_append_only, which is switched off",
        ),
        (
            "COMMENT ON TRIGGER pgtrigger_outcome_append_only_{outcome} ON outcome IS 'edited'",
            "outcome: trigger outcome_append_only, which is another",
        ),
        ("ALTER TABLE job_run DROP CONSTRAINT job_run_job_not_empty", "job_run: job_run_job_not_empty"),
        (
            "ALTER TABLE job_run DROP CONSTRAINT job_run_job_not_empty, "
            "ADD CONSTRAINT job_run_job_not_empty CHECK (job <> '') NOT VALID",
            "job_run: job_run_job_not_empty, which is not validated",
        ),
        (
            "ALTER TABLE idempotency_record DROP CONSTRAINT idempotency_record_account_key_unique",
            "idempotency_record: idempotency_record_account_key_unique",
        ),
        ("DROP INDEX job_run_newest", "job_run: job_run_newest"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'job_run_newest'::regclass",
            "job_run: job_run_newest, which is invalid",
        ),
        ("ALTER TABLE job_run DROP COLUMN outcome", "job_run: column outcome"),
        ("ALTER TABLE job_run ALTER COLUMN job DROP NOT NULL", "job_run: not null (job)"),
        ("ALTER TABLE job_run DROP CONSTRAINT job_run_pkey", "job_run: primary key (id)"),
        ("ALTER TABLE account DROP CONSTRAINT {account_slug}", "account: unique (slug)"),
        ("ALTER TABLE project DROP CONSTRAINT {project_account}", "project: foreign key (account_id)"),
        (
            "ALTER TABLE auth_permission DROP CONSTRAINT {auth_permission_unique}",
            "auth_permission: unique (content_type_id, codename)",
        ),
        ("DROP TABLE write_refusal", "write_refusal: the table"),
    ],
)
def test_what_was_taken_away_or_is_not_in_force_is_named(damage: str, told: str) -> None:
    execute(damage.format(**names()))
    assert told in schema.missing()
    finding = next(finding for finding in examine() if finding.check == "schema")
    assert (finding.ok, told in finding.detail) == (False, True)


def names() -> dict[str, str]:
    """Names that Django and its trigger library made up."""
    with connection.cursor() as cursor:

        def one(statement: str) -> str:
            cursor.execute(statement)
            return str(cursor.fetchone()[0])

        by_kind = "SELECT conname FROM pg_constraint WHERE conrelid = '{}'::regclass AND contype = '{}'"
        trigger = "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgtrigger_outcome_append_only_%'"
        return {
            "outcome": one(trigger).removeprefix("pgtrigger_outcome_append_only_"),
            "account_slug": one(by_kind.format("account", "u")),
            "project_account": one(by_kind.format("project", "f")),
            "auth_permission_unique": one(by_kind.format("auth_permission", "u")),
        }
