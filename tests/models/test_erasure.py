"""Only the transaction of an erasure opens a journal: its setting is worth nothing in another transaction."""

from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from tests.models.refusals import ERASING
from tests.models.rows import insert, run
from tests.models.rules import refused

pytestmark = pytest.mark.django_db(transaction=True)

SESSION_WIDE = "SELECT set_config('sonder.erasure', pg_current_xact_id()::text, false)"
BY = "trust_event_append_only"


@pytest.fixture(autouse=True)
def setting_is_left_as_it_was(transactional_db: None) -> Iterator[None]:
    yield
    run("RESET sonder.erasure")


def test_a_setting_that_outlives_its_transaction_opens_nothing_in_the_next() -> None:
    insert("trust_event")
    with transaction.atomic():
        run(SESSION_WIDE)
    with refused(by=BY):
        run("DELETE FROM trust_event")
    with refused(by=BY):
        run("UPDATE trust_event SET actor = 'user:1'")
    assert run("SELECT count(*) FROM trust_event") == [(1,)]


def test_the_setting_ends_with_the_erasure() -> None:
    insert("trust_event")
    with transaction.atomic():
        run(ERASING)
        run("UPDATE trust_event SET actor = 'user:1'")
    with refused(by=BY):
        run("DELETE FROM trust_event")
    assert run("SELECT actor FROM trust_event") == [("user:1",)]


def test_the_id_of_another_running_erasure_opens_nothing() -> None:
    insert("trust_event")
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text")
            (running,) = cursor.fetchone()
        with refused(by=BY):
            run("SELECT set_config('sonder.erasure', %s, true)", running)
            run("DELETE FROM trust_event")
    finally:
        other.close()


def test_an_erasure_that_is_rolled_back_leaves_the_journal_whole() -> None:
    insert("trust_event")
    with transaction.atomic():
        run(ERASING)
        run("DELETE FROM trust_event")
        transaction.set_rollback(True)
    assert run("SELECT count(*) FROM trust_event") == [(1,)]


def test_an_erasure_reaches_through_its_savepoints() -> None:
    insert("trust_event")
    with transaction.atomic():
        run(ERASING)
        with transaction.atomic():
            run("DELETE FROM trust_event")
    assert run("SELECT count(*) FROM trust_event") == [(0,)]
