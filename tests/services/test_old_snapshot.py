"""A file is read as it stood at one moment, and nothing is written beside it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory.errors import Invalid
from memory.services.sonder import snapshot
from memory.services.sonder.snapshot import open_snapshot
from tests.services.old_store import OldStore


def beside(path: Path) -> dict[str, tuple[int, int]]:
    """Every file in the folder, by its size and time of change."""
    return {each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in path.parent.iterdir()}


def tasks_of(path: Path) -> list[str]:
    with open_snapshot(path) as source:
        return [row["task"] for rows in source.batches("interactions", 2) for row in rows]


@pytest.fixture
def store(tmp_path: Path) -> OldStore:
    return OldStore(tmp_path / "memory.db")


@pytest.fixture
def used(store: OldStore) -> Iterator[OldStore]:
    """A database in WAL mode whose program is running and has not written its log into the file yet."""
    with closing(store.connection):
        store.connection.execute("PRAGMA journal_mode=WAL")
        store.connection.execute("PRAGMA wal_autocheckpoint=0")
        store.work("a", task="first")
        yield store


def test_rows_come_in_the_order_in_which_they_were_written_in_batches(store: OldStore) -> None:
    for name in "cabed":
        store.work(name, task=name)
    store.connection.close()
    assert tasks_of(store.path) == list("cabed")


def test_nothing_appears_beside_a_database_in_wal_mode_that_nobody_uses(store: OldStore) -> None:
    store.connection.execute("PRAGMA journal_mode=WAL")
    store.work("a", task="first")
    store.connection.close()
    before = beside(store.path)
    assert list(before) == ["memory.db"]
    assert tasks_of(store.path) == ["first"]
    assert beside(store.path) == before


def test_what_is_only_in_the_log_of_a_running_program_is_read_and_nothing_is_touched(used: OldStore) -> None:
    before = beside(used.path)
    assert before["memory.db-wal"][0] > 0
    assert tasks_of(used.path) == ["first"]
    assert beside(used.path) == before
    used.work("b", task="second")
    assert tasks_of(used.path) == ["first", "second"]


def test_what_a_program_has_begun_and_not_committed_is_not_read(used: OldStore) -> None:
    used.connection.execute("BEGIN IMMEDIATE")
    used.connection.execute("INSERT INTO interactions (id, task) VALUES ('b', 'second')")
    assert tasks_of(used.path) == ["first"]


# A program that dies in the middle of a transaction whose pages are in the file already.
CRASH = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN")
for number in range(400):
    connection.execute("INSERT INTO interactions (id, task) VALUES (?, ?)", (f"x{number}", "lost" * 500))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_crash_interrupted_is_undone_in_the_copy_and_left_in_the_file(store: OldStore) -> None:
    store.work("a", task="first")
    store.connection.close()
    program = subprocess.run([sys.executable, "-c", CRASH, str(store.path)], timeout=120, check=False)
    assert program.returncode == -signal.SIGKILL
    before = beside(store.path)
    assert before["memory.db-journal"][0] > 0
    assert tasks_of(store.path) == ["first"]
    assert beside(store.path) == before


def test_a_file_that_changes_while_it_is_copied_is_copied_again(
    store: OldStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.work("a", task="first")
    copied: list[Path] = []

    def taken(path: Path, copy: Path) -> bytes:
        if not copied:
            store.work("b", task="second")
        copied.append(path)
        return real(path, copy)

    real = snapshot._taken
    monkeypatch.setattr(snapshot, "_taken", taken)
    monkeypatch.setattr(snapshot, "PAUSE", 0)
    assert tasks_of(store.path) == ["first", "second"]
    assert copied.count(store.path) == 2


def test_a_file_that_never_rests_is_refused_with_what_to_do(store: OldStore, monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(range(1000))
    monkeypatch.setattr(snapshot, "_state", lambda path: (next(states),))
    monkeypatch.setattr(snapshot, "PAUSE", 0)
    with pytest.raises(Invalid, match="Stop the program"):
        tasks_of(store.path)


def test_a_file_that_is_no_database_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("SQLite is nice.")
    with pytest.raises(Invalid, match="is not a SQLite database"):
        tasks_of(text)
    store = OldStore(tmp_path / "memory.db")
    for number in range(200):
        store.work(str(number), task="x" * 300)
    store.connection.close()
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:40_000] + b"\xff" * 8192 + whole[48_192:])
    with pytest.raises(Invalid, match="recover"):
        tasks_of(store.path)


def test_of_a_full_text_index_the_index_is_a_table_and_its_storage_is_not(store: OldStore) -> None:
    store.connection.execute("CREATE VIRTUAL TABLE lessons_fts USING fts5(lesson_id UNINDEXED, text)")
    store.connection.close()
    with open_snapshot(store.path) as source:
        names = {name for name in source.tables if name.startswith("lessons")}
    assert names == {"lessons", "lessons_fts"}
