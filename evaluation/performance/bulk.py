"""What makes the loading of millions of rows take minutes instead of hours. Nothing that is measured runs under it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import psutil
from django.db import transaction

from memory.models.sql import execute, fetch


def memory_mb() -> int:
    """An eighth of the machine's: a vector index that does not fit into it takes many times longer to build."""
    return int(psutil.virtual_memory().total // 8 // 2**20)


@contextmanager
def roomy() -> Iterator[None]:
    """This session may use much memory.

    Groups are sorted and not hashed, so that rows go into the indexes of a table in the order of their keys.
    """
    wanted = {
        "maintenance_work_mem": f"{memory_mb()}MB",
        "work_mem": f"{memory_mb() // 4}MB",
        "enable_hashagg": "off",
        "synchronous_commit": "off",
    }
    for name, value in wanted.items():
        execute(f"SET {name} = '{value}'")
    yield
    for name in wanted:
        execute(f"RESET {name}")


@contextmanager
def bare(tables: Collection[str]) -> Iterator[None]:
    """These tables without foreign keys, and with their primary keys alone as indexes; all of it is back at the end.

    Built at once over all rows, indexes and checks take a fraction of what they take row by row. One transaction: if
    it fails, nothing is missing.
    """
    with transaction.atomic():
        names = list(tables)
        constraints = fetch(
            "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE conrelid = ANY(%s::text[]::regclass[]) AND contype IN ('f', 'u') ORDER BY contype = 'f', conname",
            [names],
        )
        indexes = fetch(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index i "
            "WHERE indrelid = ANY(%s::text[]::regclass[]) "
            "AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype <> 'f')",
            [names],
        )
        for table, name, _ in reversed(constraints):
            execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        for name, _ in indexes:
            execute(f"DROP INDEX {name}")
        yield
        for _, definition in indexes:
            execute(definition)
        for table, name, definition in constraints:
            execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
