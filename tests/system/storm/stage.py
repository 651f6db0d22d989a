"""Who and what is in a storm: lessons that all accounts share, lessons of accounts of their own, and who asks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory.embedding import active
from memory.embedding.hashing import HashingProvider
from memory.models import Account
from memory.services.caller import Caller
from memory.services.keys import caller_of, create_key
from tests.system.storm import texts
from tests.system.storm.board import SLOTS, Board, State, place_of


@dataclass(kw_only=True)
class Slot:
    """A place of a lesson, as the one who changes it knows it."""

    dozen: int
    number: int
    group: int  # of words: the dozens that all accounts share have their own each
    incarnation: int = 0
    lesson: UUID | None = None  # None: there is none, or it was erased
    state: str = ""  # the lesson's own, '' where there is no row
    source: UUID | None = None  # the work that it was learned from
    merged: bool = False  # a plan made it part of another

    @property
    def place(self) -> int:
        return place_of(self.dozen, self.number)

    @property
    def text(self) -> str:
        return texts.text(self.dozen, self.group, self.number, self.incarnation)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An account whose agents ask."""

    id: UUID
    place: int  # of its policy, on the board
    caller: Caller
    secret: str


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Lessons that are handed out together, and the accounts that they are handed to."""

    account_id: UUID | None  # None: all accounts share them
    slots: tuple[Slot, ...]
    accounts: tuple[Asked, ...]
    plans: list[str] = field(default_factory=list)  # applied, and not taken back
    works: list[UUID] = field(default_factory=list)  # judged
    decisions: list[UUID] = field(default_factory=list)  # that can be taken back


@dataclass(frozen=True, kw_only=True)
class Stage:
    """All of it."""

    board: Board
    shared: Scope
    own: tuple[Scope, ...]
    reviewer: int


def make(dozens_shared: int, accounts: int) -> Stage:
    """Empty scopes: one of some dozens that all share, which two accounts ask, and a dozen for each of `accounts`."""
    from django.contrib.auth import get_user_model

    dozens = dozens_shared + accounts
    board = Board(dozens * SLOTS + 2 + accounts)
    policies = iter(range(dozens * SLOTS, len(board.words)))
    shared = Scope(
        account_id=None,
        slots=tuple(slot for dozen in range(dozens_shared) for slot in _dozen(dozen, 1 + dozen)),
        accounts=(_account("steady", next(policies), board), _account("strict", next(policies), board)),
    )
    own = []
    for n in range(accounts):
        account = _account(f"own-{n}", next(policies), board)
        own.append(Scope(account_id=account.id, slots=tuple(_dozen(dozens_shared + n, 0)), accounts=(account,)))
    for slot in (slot for scope in (shared, *own) for slot in scope.slots):
        board.settle(slot.place, 0, State.GONE)
    reviewer = get_user_model().objects.create_superuser("rita", password=None)
    return Stage(board=board, shared=shared, own=tuple(own), reviewer=reviewer.pk)


def _dozen(dozen: int, group: int) -> Iterator[Slot]:
    return (Slot(dozen=dozen, number=number, group=group) for number in range(SLOTS))


def _account(slug: str, place: int, board: Board) -> Asked:
    account = Account.objects.create(slug=slug, name=slug, review_policy="auto")
    made = create_key(account, name=slug, source="caller", scopes=["loop", "read"])
    board.settle(place, 0, State.OPEN)
    return Asked(id=account.pk, place=place, caller=caller_of(made.key), secret=made.secret)


def with_settings(**changed: Any) -> None:
    """For this process, from now on."""
    from django.conf import settings

    from memory import conf

    for name, value in changed.items():
        setattr(settings, name, value)
    conf.current.cache_clear()


def have_model(revision: str) -> None:
    """This process's model is of that revision from now on."""
    HashingProvider.revision = revision
    active._provider.cache_clear()
