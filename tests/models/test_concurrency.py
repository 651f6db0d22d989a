"""Two connections at once: the rules that span rows let exactly one of two rivals through."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from tests.models.rows import EARLIER, Row, insert, new, row, run, store
from tests.models.rules import broken_rule

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = """
    SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted
                   AND pg_stat_activity.datname = current_database())
"""
PATIENCE = 10.0  # seconds; a rival waits a few milliseconds


def on_its_own_connection(work: Callable[[], object]) -> None:
    """Run a statement in a thread of its own, in a transaction of its own."""
    try:
        with transaction.atomic():
            work()
    finally:
        connection.close()


def compete(first: Callable[[], object], second: Callable[[], object], *, first_commits: bool) -> BaseException | None:
    """Let `second` start while `first` is not yet committed; what became of the second."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        with transaction.atomic():
            first()
            rival: Future[None] = pool.submit(on_its_own_connection, second)
            _until_it_waits(rival)
            transaction.set_rollback(not first_commits)
        return rival.exception(timeout=PATIENCE)


def _until_it_waits(rival: "Future[None]") -> None:
    end = time.monotonic() + PATIENCE
    while run(WAITING) != [(True,)]:
        assert not rival.done(), "the rival did not wait for the first transaction"
        assert time.monotonic() < end, "the rival neither waited nor ended"
        time.sleep(0.005)


def storing(table: str, columns: Row) -> Callable[[], object]:
    return lambda: store(table, columns)


@pytest.mark.parametrize("first_commits", [True, False])
def test_of_two_beliefs_recorded_at_once_about_one_key_exactly_one_stays(first_commits: bool) -> None:
    mine = row("fact", key="tank", valid_from=EARLIER)
    theirs = row("fact", key="tank", valid_until=None)
    error = compete(storing("fact", mine), storing("fact", theirs), first_commits=first_commits)
    winner = mine if first_commits else theirs
    assert run("SELECT id FROM fact") == [(winner["id"],)]
    assert (error is None) is not first_commits
    assert error is None or broken_rule(error) == "fact_one_at_a_time"


@pytest.mark.parametrize("first_commits", [True, False])
def test_of_two_dependencies_that_close_a_cycle_at_once_exactly_one_stays(first_commits: bool) -> None:
    a, b = insert("task")["id"], insert("task")["id"]
    mine = row("task_dependency", task_id=a, depends_on_id=b)
    theirs = row("task_dependency", task_id=b, depends_on_id=a)
    error = compete(storing("task_dependency", mine), storing("task_dependency", theirs), first_commits=first_commits)
    winner = mine if first_commits else theirs
    assert run("SELECT id FROM task_dependency") == [(winner["id"],)]
    assert (error is None) is not first_commits
    assert error is None or broken_rule(error) == "task_dependency_acyclic"


def test_of_two_lessons_with_one_text_stored_at_once_exactly_one_stays() -> None:
    mine, theirs = row("lesson"), row("lesson")
    theirs["text_sha256"] = mine["text_sha256"]
    error = compete(storing("lesson", mine), storing("lesson", theirs), first_commits=True)
    assert error is not None
    assert broken_rule(error) == "lesson_account_text_unique"
    assert run("SELECT id FROM lesson") == [(mine["id"],)]


def quarantine(lesson: object) -> Callable[[], object]:
    return lambda: run("UPDATE lesson SET state = 'quarantined' WHERE id = %s", lesson)


def test_a_vector_stored_while_its_lesson_is_quarantined_says_quarantined() -> None:
    columns = row("lesson_embedding", space_id=new("embedding_space"))
    assert compete(quarantine(columns["lesson_id"]), storing("lesson_embedding", columns), first_commits=True) is None
    assert run("SELECT state FROM lesson_embedding") == [("quarantined",)]


def test_a_lesson_quarantined_while_its_vector_is_stored_takes_the_vector_along() -> None:
    columns = row("lesson_embedding", space_id=new("embedding_space"))
    assert compete(storing("lesson_embedding", columns), quarantine(columns["lesson_id"]), first_commits=True) is None
    assert run("SELECT state FROM lesson_embedding") == [("quarantined",)]


def test_beliefs_about_different_keys_do_not_wait_for_each_other() -> None:
    mine = row("fact", key="tank", project_id=new("project"))
    theirs = row("fact", key="pump", project_id=mine["project_id"])
    with ThreadPoolExecutor(max_workers=1) as pool, transaction.atomic():
        store("fact", mine)
        pool.submit(on_its_own_connection, storing("fact", theirs)).result(timeout=PATIENCE)
    assert run("SELECT count(*) FROM fact") == [(2,)]
