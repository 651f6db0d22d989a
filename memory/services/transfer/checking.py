"""A file is looked through before anything is written: every line has its shape, every reference its row.

What is kept of a line meanwhile is its id.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from memory.errors import Invalid
from memory.rules.signals import REWARDS
from memory.rules.text import EmptyText, digest
from memory.services.transfer import wire
from memory.services.transfer.kinds import FORMAT, HEADER, KINDS, PERSON, SPACE, SPACE_FIELDS, TRAILER, VERSION
from memory.services.transfer.wire import Unreadable

LONGEST_NAME: Final = 150  # characters of a user name
ORDER: Final = (HEADER, *KINDS, PERSON, SPACE, TRAILER)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the file, read."""

    number: int  # from 1
    kind: str
    row: dict[str, Any]


@dataclass(kw_only=True)
class Checked:
    """What a whole file says of itself, and what its rows refer to at its end."""

    account: UUID
    slug: str
    lesson_scope: str
    exported_at: datetime
    counts: Counter[str] = field(default_factory=Counter)
    people: dict[int, str] = field(default_factory=dict)  # user names, by the id that they had
    spaces: dict[UUID, dict[str, Any]] = field(default_factory=dict)


def check(path: Path) -> Checked:
    """Reads a file to its end. Raises Invalid naming the first line that is not sound, and OSError."""
    lines = _raw(path)
    checked = _header(*next(lines, (1, {})))
    seen: dict[str, set[Any]] = {kind: set() for kind in ORDER}
    later: dict[tuple[str, Any], int] = {}  # rows that were referred to before they came, and by which line first
    place, closed = 0, False
    for number, data in lines:
        _demand(not closed, number, "comes after the end")
        kind = str(data.get("kind"))
        _demand(kind in ORDER[1:], number, "is of no kind that this version knows")
        _demand(ORDER.index(kind) >= place, number, f"of the kind {kind!r} comes too late")
        place = ORDER.index(kind)
        if kind == TRAILER:
            _demand(data.get("row") == {"counts": dict(checked.counts)}, number, "counts other rows than there are")
            closed = True
            continue
        line = _line(number, data)
        _reference(line, seen, later)
        _keep(line, checked)
        checked.counts[kind] += 1
    _demand(closed, 0, "The file is cut off: it has no end. Export the account again.")
    for (kind, wanted), number in later.items():
        _demand(wanted in seen[kind], number, f"refers to a {kind} that is not in the file")
    return checked


def rows(path: Path) -> Iterator[Line]:
    """The rows of a file that was found sound."""
    for number, data in _raw(path):
        if data["kind"] in KINDS:
            yield _line(number, data)


def _raw(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                data = json.loads(raw)
            except (ValueError, RecursionError):
                data = None
            _demand(isinstance(data, dict) and isinstance(data.get("row"), dict), number, "is no row as JSON")
            yield number, data


def _demand(sound: bool, number: int, sentence: str) -> None:
    if not sound:
        raise Invalid(f"Line {number} {sentence}." if number else sentence)


def _header(number: int, data: dict[str, Any]) -> Checked:
    row = data.get("row", {})
    is_export = data.get("kind") == HEADER and row.get("format") == FORMAT
    _demand(is_export, 0, "This is no export of an account: it does not begin with a header.")
    _demand(row.get("version") == VERSION, number, f"is of version {row.get('version')!r}, and this reads {VERSION}")
    scope = row.get("lesson_scope")
    _demand(scope in ("global", "account"), number, "does not say whose the lessons are")
    try:
        account, at = UUID(str(row.get("account"))), datetime.fromisoformat(str(row.get("exported_at")))
    except ValueError:
        raise Invalid(f"Line {number} does not name an account and a time.") from None
    _demand(at.tzinfo is not None, number, "has a time without a zone")
    return Checked(account=account, slug=str(row.get("slug")), lesson_scope=str(scope), exported_at=at)


def _line(number: int, data: dict[str, Any]) -> Line:
    """A row with the values of its columns. Raises Invalid."""
    kind, row = data["kind"], data["row"]
    if kind == PERSON:
        is_sound = set(row) == {"id", "username"} and isinstance(row["id"], int) and isinstance(row["username"], str)
        _demand(is_sound and 0 < len(row["username"]) <= LONGEST_NAME, number, "names no person")
        return Line(number=number, kind=kind, row=row)
    fields = SPACE_FIELDS if kind == SPACE else KINDS[kind].fields
    strange = sorted(set(row) ^ set(fields))
    _demand(not strange, number, f"has not the columns of a {kind}: {', '.join(strange)}")
    values = {}
    for name, value in row.items():
        try:
            values[name] = wire.decode(fields[name], value)
        except Unreadable as why:
            raise Invalid(f"Line {number}, {name}: {why}.") from None
    line = Line(number=number, kind=kind, row=values)
    _demand(not (flaw := _flaw(line)), number, flaw)
    return line


def _flaw(line: Line) -> str:
    """What is wrong with values that the database could not tell."""
    row = line.row
    if line.kind == "outcome" and REWARDS.get(row["signal"]) != row["reward"]:
        return "has a reward that is not its signal's"
    if line.kind == "lesson" and _digest(row["text"]) != row["text_sha256"]:
        return "has a digest that is not its text's"
    return ""


def _digest(text: str) -> str | None:
    try:
        return digest(text)
    except EmptyText:
        return None


def _reference(line: Line, seen: Mapping[str, set[Any]], later: dict[tuple[str, Any], int]) -> None:
    """Notes the line's own id, and what it refers to that has not come yet."""
    if line.kind in (PERSON, SPACE):
        seen[line.kind].add(line.row["id"])
        return
    kind = KINDS[line.kind]
    own = kind.model._meta.pk.attname
    _demand(line.row[own] not in seen[line.kind], line.number, "has the id of another line")
    seen[line.kind].add(line.row[own])
    for name, target in kind.references.items():
        wanted = line.row[name]
        if wanted is not None and wanted not in seen[target]:
            later.setdefault((target, wanted), line.number)


def _keep(line: Line, checked: Checked) -> None:
    if line.kind == "account":
        is_its = line.row["id"] == checked.account and not checked.counts["account"]
        _demand(is_its, line.number, "is another account than the header's")
    elif line.kind == PERSON:
        checked.people[line.row["id"]] = line.row["username"]
    elif line.kind == SPACE:
        checked.spaces[line.row["id"]] = line.row
