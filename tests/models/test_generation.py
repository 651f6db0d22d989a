"""The generation of what processes keep in memory moves with every lesson that leaves, and with every erasure."""

import pytest

from memory.models.vocabulary import LessonState
from tests.models.rows import insert, run
from tests.models.rules import proves

pytestmark = pytest.mark.usefixtures("database")


def generation() -> object:
    """Of the active space, as it is once the transaction so far is committed."""
    run("SET CONSTRAINTS ALL IMMEDIATE")
    run("SET CONSTRAINTS ALL DEFERRED")
    run("SET LOCAL sonder.generation = ''")
    ((found,),) = run("SELECT generation FROM embedding_space WHERE is_active")
    return found


@pytest.fixture
def before() -> object:
    insert("embedding_space", is_active=True)
    return generation()


@proves("lesson_left_service")
@pytest.mark.parametrize("state", sorted({*LessonState.values} - {"active"}))
def test_it_moves_when_a_lesson_leaves_service(before: object, state: str) -> None:
    insert("lesson", state="active")
    assert generation() == before
    run("UPDATE lesson SET state = %s", state)
    assert generation() != before


@proves("lesson_left_service")
def test_it_stays_when_a_lesson_enters_service_or_keeps_its_state(before: object) -> None:
    insert("lesson", state="quarantined")
    run("UPDATE lesson SET state = 'active'")
    run("UPDATE lesson SET state = 'active', anchors = '{}'")
    assert generation() == before


@proves("lesson_left_service")
def test_it_moves_once_for_many_lessons_of_one_transaction(before: object) -> None:
    for _ in range(3):
        insert("lesson", state="active")
    run("UPDATE lesson SET state = 'quarantined'")
    run("SET CONSTRAINTS ALL IMMEDIATE")
    ((first,),) = run("SELECT generation FROM embedding_space WHERE is_active")
    run("UPDATE lesson SET state = 'active'")
    run("UPDATE lesson SET state = 'quarantined'")
    assert run("SELECT generation FROM embedding_space WHERE is_active") == [(first,)]
    assert first != before


@proves("lesson_gone")
def test_it_moves_when_a_lesson_is_gone(before: object) -> None:
    insert("lesson", state="rejected")
    run("DELETE FROM lesson")
    assert generation() != before


@proves("erasure_record_next_generation")
def test_it_moves_with_every_erasure_whatever_was_erased(before: object) -> None:
    insert("erasure_record")
    assert generation() != before
