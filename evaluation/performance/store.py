"""Stores of synthetic lessons, each in a database of its own, kept for the next run while nothing about it changes."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections

from evaluation.performance import load
from evaluation.performance.bulk import roomy
from evaluation.performance.corpus import Corpus
from memory.models import EmbeddingSpace
from memory.models.sql import execute, fetch
from memory.search.support import samples
from memory.search.terms import statistics
from memory.services.space import open_first_space

PREFIX: Final = "sonder_bench"
MAINTENANCE: Final = "postgres"
ROOT: Final = Path(__file__).resolve().parents[2]
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a store holds."""

    lessons: int
    servings: int = 5  # usage rows of each lesson; interactions have five each
    accounts: int = 0  # lessons belong to this many accounts, the first of which has three in ten; 0: to none
    vectors: bool = True
    twins: bool = False  # one lesson in twenty says what the one before it says

    @property
    def database(self) -> str:
        return f"{PREFIX}_{self.lessons}_{self.servings}_{self.accounts}_{int(self.vectors)}{'_twins' * self.twins}"

    @property
    def usage_rows(self) -> int:
        return self.lessons * self.servings


def connect(database: str) -> None:
    """Makes a database of the same server the one that everything in this thread works on.

    Django keeps one pool of connections for an alias, so each database has one connection of this thread instead. It
    goes by the default alias, which rows remember and relations compare.
    """
    default = connections.settings["default"]
    options = {name: value for name, value in default["OPTIONS"].items() if name != "pool"}
    connections.settings[database] = {**default, "NAME": database, "OPTIONS": options}
    connections[database].alias = DEFAULT_DB_ALIAS
    connections[DEFAULT_DB_ALIAS] = connections[database]
    statistics.forget()
    samples.forget()


def disconnect(database: str) -> None:
    """Closes this thread's connection to a database, so that it can be dropped or copied, and turns to another one."""
    if database in connections.settings:
        connections[database].close()
    connect(MAINTENANCE)


def fingerprint() -> str:
    """Changes with everything that a store is made of: the schema, the lessons, how they are loaded."""
    parts = [Path(__file__), *(Path(__file__).with_name(name) for name in ("corpus.py", "load.py", "bulk.py"))]
    parts += sorted((ROOT / "memory" / "migrations").glob("*.py"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()


def open_store(shape: Shape, corpus: Corpus, say: Say) -> EmbeddingSpace:
    """Connects to a store of this shape, made first where there is none or it was made otherwise."""
    connect(MAINTENANCE)
    made_of = fingerprint()
    known = fetch("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [shape.database])
    if known != [(made_of,)]:
        drop(shape)
        execute(f"CREATE DATABASE {shape.database}")
        connect(shape.database)
        build(shape, corpus, say)
        execute(f"COMMENT ON DATABASE {shape.database} IS '{made_of}'")
    connect(shape.database)
    return EmbeddingSpace.objects.get(is_active=True)


@contextmanager
def scratch(shape: Shape) -> Iterator[str]:
    """A copy of a store, to be changed: connects to it, gives its name, and drops it at the end."""
    copy = f"{shape.database}_scratch"
    disconnect(shape.database)  # nobody may be connected to what is copied
    fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [shape.database])
    disconnect(copy)
    execute(f"DROP DATABASE IF EXISTS {copy} WITH (FORCE)")
    execute(f"CREATE DATABASE {copy} TEMPLATE {shape.database} STRATEGY FILE_COPY")
    connect(copy)
    try:
        yield copy
    finally:
        disconnect(copy)
        execute(f"DROP DATABASE {copy} WITH (FORCE)")
        connect(shape.database)


@contextmanager
def empty(database: str) -> Iterator[str]:
    """A database with nothing in it, for something else; this thread stays where it is."""
    execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
    execute(f"CREATE DATABASE {database}")
    try:
        yield database
    finally:
        execute(f"DROP DATABASE {database} WITH (FORCE)")


def drop(shape: Shape) -> None:
    """Removes a store, if it is there."""
    disconnect(shape.database)
    execute(f"DROP DATABASE IF EXISTS {shape.database} WITH (FORCE)")


def build(shape: Shape, corpus: Corpus, say: Say) -> None:
    """Fills the empty database that this thread is connected to."""
    say("schema")
    call_command("migrate", interactive=False, verbosity=0)
    with roomy():
        say("lessons")
        load.lessons(corpus, shape.lessons, accounts=shape.accounts, vectors=shape.vectors, twins=shape.twins)
        if shape.servings:
            say("usage")
            load.usage(shape.lessons, shape.servings)
        say("indexes")
        open_first_space()
        # VACUUM flushes what the GIN indexes hold back while rows are written, as autovacuum does in a running store.
        execute("VACUUM (ANALYZE)")
