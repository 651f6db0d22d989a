"""A SQLite file as it stood at one moment, read from a copy: nothing is written beside the file, not even a lock.

A database that somebody works on has more than one file. What was committed and is not in the main file yet lies in
its write-ahead log; what a crash interrupted is undone from its rollback journal. They are copied together, and again
if one of them was replaced meanwhile.
"""

import hashlib
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from memory.errors import Invalid

MAGIC: Final = b"SQLite format 3\x00"
BESIDE: Final = ("-wal", "-journal")  # not -shm: it is an index of the log, made anew by whoever opens the copy
ATTEMPTS: Final = 20
PAUSE: Final = 0.25  # seconds between two attempts to copy a file that is being written
WAL_HEAD: Final = 32  # bytes: while these stay, the log only grows and no checkpoint has made it start over

Row = Mapping[str, Any]  # a column that the file does not have is None, through `get`


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The copy, open for reading."""

    connection: sqlite3.Connection
    name: str  # of the file that was copied
    sha256: str  # of what was copied: the same file again is the same import
    tables: Mapping[str, frozenset[str]]  # every table with its columns; of a full-text index only the index itself

    def count(self, table: str) -> int:
        """Rows of a table; 0 if there is no such table."""
        if table not in self.tables:
            return 0
        ((n,),) = self.connection.execute(f"SELECT count(*) FROM {_quoted(table)}")
        return int(n)

    def batches(self, table: str, size: int) -> Iterator[list[Row]]:
        """The rows of a table in the order in which they were written, each with its `rowid`."""
        after: int | None = None
        while table in self.tables:
            where, seen = ("", ()) if after is None else ("WHERE rowid > ?", (after,))
            cursor = self.connection.execute(
                f"SELECT rowid AS rowid, * FROM {_quoted(table)} {where} ORDER BY rowid LIMIT ?", (*seen, size)
            )
            names = [column[0] for column in cursor.description]
            rows: list[Row] = [dict(zip(names, values, strict=True)) for values in cursor]
            if not rows:
                return
            after = rows[-1]["rowid"]
            yield rows


@contextmanager
def open_snapshot(path: Path) -> Iterator[Snapshot]:
    """Raises Invalid for what is no sound SQLite database, and OSError where a file cannot be read or copied."""
    with TemporaryDirectory(prefix="sonder-import-") as folder:
        copy = Path(folder) / "memory.db"
        sha256 = _copy(path, copy)
        connection = sqlite3.connect(copy)
        try:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield Snapshot(connection=connection, name=path.name, sha256=sha256, tables=_tables(connection, path))
        finally:
            connection.close()


def _copy(path: Path, copy: Path) -> str:
    """Copies the database with what lies beside it, as of one moment; returns their digest."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise Invalid(f"{path} is not a SQLite database.")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        before = _state(path)
        try:
            pieces = [_taken(path, copy), *(_taken(_beside(path, end), _beside(copy, end)) for end in BESIDE)]
        except FileNotFoundError:
            continue  # a log that was there a moment ago: its writer has just closed
        if _state(path) == before:
            return hashlib.sha256(b"".join(pieces)).hexdigest()
    raise Invalid(f"{path} is being written all the time. Stop the program that uses it, and run this again.")


def _taken(path: Path, copy: Path) -> bytes:
    """Copies one file, or removes an earlier copy where there is none now; returns its SHA-256, or nothing."""
    copy.unlink(missing_ok=True)
    if not path.exists():
        return b""
    shutil.copyfile(path, copy)
    with copy.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _state(path: Path) -> tuple[object, ...]:
    """What changes when the main file is written, or the log starts over."""
    log, journal = (_beside(path, end) for end in BESIDE)
    return _written(path), _written(journal), log.read_bytes()[:WAL_HEAD] if log.exists() else b""


def _written(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _tables(connection: sqlite3.Connection, path: Path) -> dict[str, frozenset[str]]:
    """The tables with their columns. Raises Invalid if the file is damaged."""
    try:
        ((sound,),) = connection.execute("PRAGMA quick_check(1)")
        if sound != "ok":
            raise Invalid(f"{path} is damaged: {sound}. Repair a copy with `sqlite3 FILE .recover` and import that.")
        found = connection.execute("SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')")
        names = [name for (name,) in found.fetchall() if not name.startswith("sqlite_")]
        return {
            name: frozenset(column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", [name]))
            for name in names
        }
    except sqlite3.DatabaseError as error:
        raise Invalid(f"{path} cannot be read: {error}. Repair a copy with `sqlite3 FILE .recover`.") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
