"""What a process keeps in memory of lessons and tasks: nothing of it outlives a quarantine or an erasure, wherever that
happened and whatever was being read meanwhile."""

from collections.abc import Callable
from uuid import UUID

import numpy as np
import pytest
from django.contrib.auth import get_user_model

from memory.embedding import Vectors, active
from memory.embedding.active import provider, usable_space
from memory.embedding.cache import CachedQueries
from memory.embedding.hashing import HashingProvider
from memory.models import Account, EmbeddingSpace, Lesson
from memory.models.sql import execute
from memory.search import Scope, support
from memory.services import rejection
from memory.services.erasure import erase
from memory.services.lesson_verdicts import quarantine as quarantine_by_reviewer
from memory.services.space import activate, configured_space
from tests.services.play import make_callers, serve

pytestmark = pytest.mark.django_db
GLOBAL = Scope(account_id=None, reviewed_only=False)
TEXT = "Pass `timeout=` to requests.get() so that a silent server cannot hang the worker."


@pytest.fixture
def reviewer() -> int:
    return int(get_user_model().objects.create_user("rita").pk)


def erased(lesson: Lesson, _: int) -> None:
    erase("lesson", lesson.pk, account_id=None, actor="system")


def quarantined(lesson: Lesson, reviewer: int) -> None:
    quarantine_by_reviewer(lesson.pk, reviewer=reviewer, reason="it does harm")


def rejected(lesson: Lesson, reviewer: int) -> None:
    rejection.reject(lesson.pk, reviewer=reviewer, reason="it does harm")


def commits() -> None:
    """The last acts of a transaction, which within a test does not end."""
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")
    execute("SET LOCAL sonder.generation = ''")


WAYS_OUT = [erased, quarantined, rejected]


@pytest.mark.parametrize("leave", WAYS_OUT)
def test_what_left_service_elsewhere_is_in_no_sample_that_this_process_keeps(
    leave: Callable[[Lesson, int], None], lesson: Callable[..., Lesson], reviewer: int
) -> None:
    here, gone = support._Samples(), lesson(TEXT)
    assert len(here.get(usable_space(), GLOBAL)) == 1
    leave(gone, reviewer)
    commits()
    assert len(here.get(usable_space(), GLOBAL)) == 0


@pytest.mark.parametrize("leave", WAYS_OUT)
def test_a_sample_that_was_being_read_when_a_lesson_left_is_not_kept_for_those_who_come_after(
    leave: Callable[[Lesson, int], None],
    lesson: Callable[..., Lesson],
    reviewer: int,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    gone, read = lesson(TEXT), support._read

    def read_and_lose(space: EmbeddingSpace, scope: Scope) -> Vectors:
        sample = read(space, scope)
        monkeypatch.setattr(support, "_read", read)
        with django_capture_on_commit_callbacks(execute=True):
            leave(gone, reviewer)
        commits()
        support.samples.get(usable_space(), scope)  # somebody who comes after
        return sample

    support.samples.forget()
    monkeypatch.setattr(support, "_read", read_and_lose)
    assert len(support.samples.get(usable_space(), GLOBAL)) == 1, "this one began before"
    assert len(support.samples.get(usable_space(), GLOBAL)) == 0


def test_a_sample_is_kept_while_no_lesson_leaves(
    lesson: Callable[..., Lesson], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, read, times = support._Samples(), support._read, list[UUID]()

    def counted(space: EmbeddingSpace, scope: Scope) -> Vectors:
        times.append(space.pk)
        return read(space, scope)

    monkeypatch.setattr(support, "_read", counted)
    for text in (TEXT, "Call `deque.popleft()` where a queue grows: list.pop(0) copies the rest."):
        lesson(text)
        here.get(usable_space(), GLOBAL)
    assert len(times) == 1


def test_an_erased_task_has_no_vector_in_a_process_that_searches_again(account: Account) -> None:
    make_callers(account)
    work = serve(account, "fetch the report of the quokka", [])
    keeping = provider()
    assert isinstance(keeping, CachedQueries)
    usable_space()
    kept = keeping.embed_query(work.task)
    assert keeping.embed_query(work.task) is kept
    erase("interaction", work.pk, account_id=None, actor="system")
    commits()
    usable_space()
    again = keeping.embed_query(work.task)
    assert again is not kept
    np.testing.assert_array_equal(again, kept)


def test_a_vector_that_was_being_made_in_an_earlier_generation_is_not_remembered_in_the_next(
    space: EmbeddingSpace,
) -> None:
    class Moving(HashingProvider):
        """The space moves on while it works."""

        def embed_query(self, text: str) -> Vectors:
            cached.follow(UUID(int=2))
            return super().embed_query(text)

    cached = CachedQueries(Moving(), 8)
    cached.follow(UUID(int=1))
    assert cached.embed_query("a1") is not cached.embed_query("a1")
    assert cached.embed_query("a1") is cached.embed_query("a1")


def test_a_sample_of_a_space_that_is_active_again_lacks_what_left_while_another_was(
    lesson: Callable[..., Lesson], reviewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, gone, first = support._Samples(), lesson(TEXT), usable_space()
    assert len(here.get(first, GLOBAL)) == 1
    with monkeypatch.context() as other_model:
        other_model.setattr(HashingProvider, "revision", "2")
        active._provider.cache_clear()
        activate(configured_space())
        quarantined(gone, reviewer)
        commits()
    active._provider.cache_clear()
    activate(first)
    assert len(here.get(usable_space(), GLOBAL)) == 0
