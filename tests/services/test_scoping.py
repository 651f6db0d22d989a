"""The locks of crediting: the turns of one scope, and the pause of all."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test import override_settings

from memory.models import Account
from memory.models.base import new_id
from memory.models.sql import fetch
from memory.services.scoping import lock_all, lock_scope

ONE, OTHER = new_id(), new_id()
LOCKED: dict[str, Callable[[], None]] = {
    "one scope": lambda: lock_scope(ONE),
    "another scope": lambda: lock_scope(OTHER),
    "the global scope": lambda: lock_scope(None),
    "all": lock_all,
}


def advisory_locks() -> int:
    """How many this session holds."""
    ((n,),) = fetch("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
    return int(n)


@contextmanager
def held(lock: Callable[[], None]) -> Iterator[None]:
    """Another session holds the lock."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock()
            taken.set()
            done.wait(30)
        connection.close()

    rival = threading.Thread(target=hold)
    rival.start()
    assert taken.wait(30)
    try:
        yield
    finally:
        done.set()
        rival.join(30)


def begin(lock: Callable[[], None]) -> tuple[threading.Thread, threading.Event]:
    """A session that takes the lock, and the event of its having got it."""
    got = threading.Event()

    def take() -> None:
        with transaction.atomic():
            lock()
            got.set()
        connection.close()

    taker = threading.Thread(target=take)
    taker.start()
    return taker, got


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("holder", "taker", "waits"),
    [
        ("one scope", "one scope", True),
        ("one scope", "another scope", False),
        ("one scope", "the global scope", False),
        ("one scope", "all", True),
        ("the global scope", "all", True),
        ("all", "one scope", True),
        ("all", "the global scope", True),
        ("all", "all", True),
    ],
)
def test_a_scope_waits_for_itself_and_for_the_pause_of_all(holder: str, taker: str, waits: bool) -> None:
    with held(LOCKED[holder]):
        session, got = begin(LOCKED[taker])
        assert got.wait(0.4) is not waits
    session.join(30)
    assert got.is_set()


@pytest.mark.django_db
def test_the_pause_of_all_is_one_lock_however_many_accounts_there_are() -> None:
    Account.objects.bulk_create(Account(slug=f"a{n}", name=f"Account {n}", review_policy="auto") for n in range(50))
    with override_settings(SONDER_LESSON_SCOPE="account"):
        lock_all()
    assert advisory_locks() == 1


@pytest.mark.django_db
def test_who_paused_all_may_take_a_turn_of_its_own() -> None:
    lock_all()
    lock_scope(UUID(int=0))
    assert advisory_locks() == 3, "the pause, its share of it, and the turn"
