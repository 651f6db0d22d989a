"""The import: into an empty store or one that is in use, all of a file or nothing of it.

What is here already stays as it is here. So the same file again changes nothing, and an older one takes nothing back.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from django.db import DatabaseError, IntegrityError, transaction

from memory.errors import Conflict, Invalid
from memory.models import Account
from memory.services.importing import refresh_statistics
from memory.services.scoping import lesson_account, lock_all
from memory.services.transfer import lessons, replay, trust
from memory.services.transfer.arrival import Arrival, people_here, spaces_here
from memory.services.transfer.checking import Checked, Line, check, rows
from memory.services.transfer.deciding import ALREADY, reason
from memory.services.transfer.kinds import KINDS, Kind
from memory.services.transfer.making import made

BATCH: Final = 500  # rows written at once
ORDER: Final = tuple(KINDS)


def import_account(path: Path) -> Iterator[tuple[str, int, Arrival | None]]:
    """Yields the kind, how many of its rows are done, and the import so far; first a look at the whole file.

    Raises Invalid naming the line that is not sound, Conflict where the account cannot come here, and OSError. Then
    nothing has changed.
    """
    yield "looked through", 0, None
    checked = check(path)
    yield "looked through", sum(checked.counts.values()), None
    with transaction.atomic():
        lock_all()  # no credit and no erasure is under way, and none begins, until this has committed
        _refuse(checked)
        arrival = Arrival(
            checked=checked,
            account=checked.account,
            scope=lesson_account(checked.account),
            people=people_here(checked.people),
            spaces=spaces_here(checked.spaces.values()),
            bases=trust.newest_credits(),
        )
        yield from _write(path, arrival)
        trust.settle(arrival)
        replay.replay(arrival)
    refresh_statistics()
    yield "done", sum(checked.counts.values()), arrival


def _refuse(checked: Checked) -> None:
    """Where an account cannot come here, whatever its rows are."""
    at = replay.erased_account(checked.account)
    if at is not None:
        raise Conflict(f"The account {checked.slug!r} was erased here on {at:%Y-%m-%d}. Nothing was imported.")
    here = "global" if lesson_account(checked.account) is None else "account"
    if here != checked.lesson_scope:
        raise Conflict(
            f"The lessons of this file belong to the scope {checked.lesson_scope!r}, and here SONDER_LESSON_SCOPE is "
            f"{here!r}: what was one account's would be everybody's, or the other way round."
        )
    if Account.objects.filter(slug=checked.slug).exclude(pk=checked.account).exists():
        raise Conflict(f"Another account is called {checked.slug!r} here. Rename that one first.")


def _write(path: Path, arrival: Arrival) -> Iterator[tuple[str, int, Arrival]]:
    compared = False
    for name, lines in groupby(rows(path), key=lambda line: line.kind):
        if not compared and ORDER.index(name) > ORDER.index("lesson_embedding"):
            lessons.compare(arrival)
            compared = True
        batch: list[Line] = []
        for line in lines:
            batch.append(line)
            if len(batch) == BATCH:
                _take(arrival, KINDS[name], batch)
                batch = []
                yield name, arrival.moved[name].rows, arrival
        _take(arrival, KINDS[name], batch)
        yield name, arrival.moved[name].rows, arrival
    if not compared:
        lessons.compare(arrival)


def _take(arrival: Arrival, kind: Kind, batch: Sequence[Line]) -> None:
    """Writes rows of one kind that are not here yet."""
    moved, pk = arrival.moved[kind.name], kind.model._meta.pk.attname
    there = _there(arrival, kind, [line.row[pk] for line in batch], batch)
    new: list[tuple[Line, dict[str, Any]]] = []
    taken: set[Any] = set()
    for line in batch:
        moved.rows += 1
        row = arrival.here(kind.name, line.row)
        why = ALREADY if line.row[pk] in there else reason(arrival, kind.name, row, taken)
        if not why:
            new.append((line, made(arrival, kind.name, row)))
        elif why == ALREADY:
            moved.already += 1
        else:
            moved.skip(why)
            if kind.name == "lesson_usage":
                arrival.lost.add(row["id"])
    _insert(kind, new)
    moved.imported += len(new)
    arrival.new[kind.name].update(line.row[pk] for line, _ in new)


def _there(arrival: Arrival, kind: Kind, ids: Sequence[Any], batch: Sequence[Line]) -> set[Any]:
    """Which of the ids are here. Raises Invalid where one is another account's."""
    found = kind.model._default_manager.filter(pk__in=ids)
    if kind.name not in ("account", "lesson") and "account_id" in kind.fields:
        foreign = set(found.exclude(account_id=None).exclude(account_id=arrival.account).values_list("pk", flat=True))
        for line in batch:
            if line.row[kind.model._meta.pk.attname] in foreign:
                raise Invalid(f"Line {line.number} has the id of a {kind.name} of another account.")
    return set(found.values_list("pk", flat=True))


def _insert(kind: Kind, new: Sequence[tuple[Line, dict[str, Any]]]) -> None:
    """Writes rows at once. Raises Invalid naming the first that the database refuses."""
    try:
        with transaction.atomic():
            kind.model._default_manager.bulk_create([kind.model(**row) for _, row in new])
    except DatabaseError:
        for line, row in new:
            try:
                with transaction.atomic():
                    kind.model._default_manager.bulk_create([kind.model(**row)])
            except IntegrityError as error:
                raise Invalid(f"Line {line.number} is refused: {str(error).splitlines()[0]}.") from None
        raise
