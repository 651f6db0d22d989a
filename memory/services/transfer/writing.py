"""The export: a header, the rows of each kind, and a trailer with their counts, so that a cut file is noticed.

One snapshot of the database, read with a cursor on the server: memory does not grow with the account.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from memory.models import Account, EmbeddingSpace
from memory.models.sql import execute
from memory.services.scoping import lesson_account
from memory.services.transfer import wire
from memory.services.transfer.kinds import (
    FORMAT,
    HEADER,
    KINDS,
    PERSON,
    SPACE,
    SPACE_FIELDS,
    TRAILER,
    VERSION,
    Kind,
    Owner,
)

CHUNK: Final = 500  # rows that are in memory at once
USER: Final = "user:"  # begins an actor that is a person
ROWS: Final = "rows"  # of a trust event's evidence: one for each piece of work, with its account


def export(account: Account, write: Callable[[str], object]) -> Generator[tuple[str, int]]:
    """Writes an account line by line; yields the kind and how many rows of it are written."""
    owner = Owner(account=account.pk, scope=lesson_account(account.pk))
    counts: Counter[str] = Counter()
    people, spaces = set[int](), set[UUID]()
    with snapshot():
        write(wire.line(HEADER, _header(account, owner)))
        for kind in KINDS.values():
            names = tuple(kind.fields)
            found = kind.rows(owner).order_by("pk").values_list(*names)
            for values in found.iterator(chunk_size=CHUNK):
                row = dict(zip(names, values, strict=True))
                _note(kind, row, people, spaces)
                told = {name: wire.encode(f, _own(account, kind, name, row[name])) for name, f in kind.fields.items()}
                write(wire.line(kind.name, told))
                counts[kind.name] += 1
                if counts[kind.name] % CHUNK == 0:
                    yield kind.name, counts[kind.name]
            if counts[kind.name]:
                yield kind.name, counts[kind.name]
        for name, row in (*_people(people), *_spaces(spaces)):
            write(wire.line(name, row))
            counts[name] += 1
            yield name, counts[name]
        write(wire.line(TRAILER, {"counts": dict(counts)}))


@contextmanager
def snapshot() -> Iterator[None]:
    """Everything as of one moment. Inside of a transaction that has begun it is that one's."""
    inside = connection.in_atomic_block
    with transaction.atomic():
        if not inside:
            execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _header(account: Account, owner: Owner) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "account": str(account.pk),
        "slug": account.slug,
        "lesson_scope": "global" if owner.scope is None else "account",
        "exported_at": timezone.now().isoformat(),
    }


def _note(kind: Kind, row: dict[str, Any], people: set[int], spaces: set[UUID]) -> None:
    """Whom a row names, and in which space it lies."""
    for name, target in kind.references.items():
        if row[name] is not None and target == PERSON:
            people.add(row[name])
        elif row[name] is not None and target == SPACE:
            spaces.add(row[name])
    actor = row.get("actor", "")
    if actor.startswith(USER) and actor.removeprefix(USER).isdecimal():
        people.add(int(actor.removeprefix(USER)))


def _own(account: Account, kind: Kind, name: str, value: Any) -> Any:
    """A value without what is another account's: a trust event tells of all work that a shared lesson was part of."""
    if (kind.name, name) != ("trust_event", "evidence") or not isinstance(value.get(ROWS), list):
        return value
    return {**value, ROWS: [row for row in value[ROWS] if row.get("account") in (None, str(account.pk))]}


def _people(ids: set[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those that rows name, by their user name alone."""
    for user in get_user_model().objects.filter(pk__in=ids).order_by("pk"):
        yield PERSON, {"id": user.pk, "username": user.get_username()}


def _spaces(ids: set[UUID]) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in EmbeddingSpace.objects.filter(pk__in=ids).order_by("pk").values(*SPACE_FIELDS):
        yield SPACE, {name: wire.encode(f, row[name]) for name, f in SPACE_FIELDS.items()}
