"""Tasks, their events and what must come first as PostgreSQL keeps them."""

from itertools import pairwise
from uuid import UUID

import pytest

from tests.models.refusals import Checks, Journals, Tables, Uniques
from tests.models.rows import Row, insert, new, row, run
from tests.models.rules import Journal, Unique, links, not_empty, proves, refused, words

BY = "task_dependency_acyclic"


class TestTask(Tables, Checks, Uniques, Journals):
    tables = {
        "task": links("account_id", "project_id", "parent_id"),
        "task_event": links("task_id"),
        "task_dependency": links("task_id", "depends_on_id"),
    }
    checks = [
        not_empty("task", "title"),
        words("task", "status", "pending", "in_progress", "blocked", "done", "cancelled"),
        not_empty("task_event", "event"),
    ]
    uniques = [
        Unique(
            name="task_dependency_unique",
            table="task_dependency",
            key=("task_id", "depends_on_id"),
            passes=[{"task_id": new("task")}, {"depends_on_id": new("task")}],
        )
    ]
    journals = [Journal(table="task_event")]


def wait(task: UUID, depends_on: UUID) -> Row:
    """Make one task wait for another."""
    return insert("task_dependency", task_id=task, depends_on_id=depends_on)


@pytest.fixture
def tasks(database: None) -> list[UUID]:
    return [insert("task")["id"] for _ in range(4)]


@proves("task_dependency_not_self")
def test_a_task_that_waits_for_itself_is_refused(tasks: list[UUID]) -> None:
    with refused(by="task_dependency_not_self"):
        wait(tasks[0], tasks[0])


@proves("task_dependency_acyclic")
@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_of_any_length_is_refused_where_it_would_close(tasks: list[UUID], length: int) -> None:
    circle = tasks[:length]
    for task, depends_on in pairwise(circle):
        wait(task, depends_on)
    with refused(by=BY):
        wait(circle[-1], circle[0])
    assert run("SELECT count(*) FROM task_dependency") == [(length - 1,)]


@proves("task_dependency_acyclic")
def test_two_ways_to_one_task_are_no_cycle(tasks: list[UUID]) -> None:
    top, left, right, bottom = tasks
    for task, depends_on in ((top, left), (top, right), (left, bottom), (right, bottom), (top, bottom)):
        wait(task, depends_on)
    assert run("SELECT count(*) FROM task_dependency") == [(5,)]


@proves("task_dependency_acyclic")
def test_a_changed_dependency_cannot_close_a_cycle_either(tasks: list[UUID]) -> None:
    first, second, third, _ = tasks
    wait(first, second)
    changed = wait(second, third)
    with refused(by=BY):
        run("UPDATE task_dependency SET depends_on_id = %s WHERE id = %s", first, changed["id"])


@proves("task_dependency_acyclic")
def test_a_dependency_may_be_turned_around(tasks: list[UUID]) -> None:
    first, second, _, _ = tasks
    wait(first, second)
    run("UPDATE task_dependency SET task_id = %s, depends_on_id = %s", second, first)
    assert run("SELECT task_id FROM task_dependency") == [(second,)]


@proves("task_dependency_acyclic")
def test_one_statement_cannot_store_both_halves_of_a_cycle(tasks: list[UUID]) -> None:
    halves = [row("task_dependency", task_id=a, depends_on_id=b) for a, b in (tasks[:2], tasks[1::-1])]
    names, places = ", ".join(halves[0]), ", ".join(["%s"] * len(halves[0]))
    with refused(by=BY):
        run(
            f"INSERT INTO task_dependency ({names}) VALUES ({places}), ({places})",
            *halves[0].values(),
            *halves[1].values(),
        )
