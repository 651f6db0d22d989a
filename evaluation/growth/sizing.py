"""What a filled store takes on the disk, and what building the vector index takes. Runs inside (`inside.py`)."""

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import connection
from psycopg.errors import Diagnostic

from memory.models import EmbeddingSpace
from memory.models.sql import execute, fetch
from memory.search.terms import statistics
from memory.services.space import index_definition, index_name

SPILLED: Final = re.compile(r"no longer fits into maintenance_work_mem after (\d+) tuples")
MB: Final = 2**20


def tables() -> Mapping[str, Mapping[str, Any]]:
    """Of each table that has rows: how many, and the bytes of its own, of its long values and of each index."""
    found: dict[str, dict[str, Any]] = {}
    for name, own, long in fetch(
        "SELECT c.relname, pg_relation_size(c.oid), coalesce(pg_total_relation_size(c.reltoastrelid), 0) "
        "FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
    ):
        ((rows,),) = fetch(f'SELECT count(*) FROM "{name}"')
        if rows:
            found[name] = {"rows": rows, "own": own, "long": long, "indexes": _indexes(name)}
    return found


def _indexes(table: str) -> dict[str, int]:
    rows = fetch(
        "SELECT c.relname, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = %s::regclass",
        [table],
    )
    return {re.sub(r"_[0-9a-f]{32}_", "_", name): size for name, size in rows}


def vector_index(memory_mb: int, workers: int) -> Mapping[str, Any]:
    """Builds the index of active lessons anew: seconds, bytes, and after how many lessons its memory was used up."""
    space = EmbeddingSpace.objects.get(is_active=True)
    name = index_name(space, "active")
    execute(f"SET maintenance_work_mem = '{memory_mb}MB'")
    execute(f"SET max_parallel_maintenance_workers = {workers}")
    execute(f"DROP INDEX {name}")
    told: list[str] = []

    def handler(notice: Diagnostic) -> None:
        told.append(str(notice.message_primary))

    connection.ensure_connection()
    connection.connection.add_notice_handler(handler)
    began = time.perf_counter()
    execute(f"CREATE INDEX {name} {index_definition(space, 'active')}")
    seconds = time.perf_counter() - began
    connection.connection.remove_notice_handler(handler)
    spilled = [int(found[1]) for each in told if (found := SPILLED.search(each))]
    ((size,),) = fetch("SELECT pg_relation_size(%s::regclass)", [name])
    ((rows,),) = fetch("SELECT count(*) FROM lesson_embedding WHERE state = 'active'")
    return {"memory_mb": memory_mb, "workers": workers, "seconds": seconds, "bytes": size, "lessons": rows,
            "spilled_after": spilled[0] if spilled else None}  # fmt: skip


def words() -> Mapping[str, Any]:
    """What is known of the words: how many have a frequency, and the share below which none has."""
    statistics.forget()
    known = statistics.get()
    return {"listed": len(known.shares), "rarest": known.rarest}


def upkeep() -> Mapping[str, float]:
    """Seconds of what PostgreSQL does to the whole of the largest tables now and then."""
    taken = {}
    for name in ("lesson_usage", "lesson_embedding", "lesson"):
        began = time.perf_counter()
        execute(f"VACUUM (FREEZE, ANALYZE) {name}")
        taken[name] = time.perf_counter() - began
    return taken
