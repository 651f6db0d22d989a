"""What was erased here is erased again where a file brings it back: the very erasure, with all that it reaches.

The file may be older than the erasure. Its rows come in with everything else, so that an erasure finds every copy in
what arrived with them, and go before anybody can see them.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

from memory.models import ErasureRecord
from memory.models.sql import execute, fetch
from memory.services.erasure import KINDS, read_ledger
from memory.services.transfer.arrival import Arrival

DEMO: Final = "demo"  # taken back from an account that may stay, and be filled again


def erased() -> Iterator[tuple[str, UUID, datetime]]:
    """Kind, subject and time of every erasure that the database or the ledger beside it knows."""
    seen = set()
    recorded = ErasureRecord.objects.order_by("id").values_list("kind", "subject", "created_at")
    for kind, subject, at in (*recorded, *read_ledger()):
        if (kind, subject) not in seen:
            seen.add((kind, subject))
            yield kind, subject, at


def erased_account(account: UUID) -> datetime | None:
    """When an account was erased here; None if it was not."""
    return next((at for kind, subject, at in erased() if (kind, subject) == ("account", account)), None)


def replay(arrival: Arrival) -> None:
    """Erases what arrived and had been erased. Runs in the import's transaction, under the lock of erasures."""
    counts = Counter[str]()
    # The append-only triggers let through the transaction that this names, and no other.
    fetch("SELECT set_config('sonder.erasure', pg_current_xact_id()::text, true)")
    for kind, subject, at in erased():
        if kind in KINDS and _has_arrived(arrival, kind, subject, at):
            KINDS[kind](subject, counts)
    fetch("SELECT set_config('sonder.erasure', '', true)")
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")
    arrival.erased = {table: n for table, n in sorted(counts.items()) if n}


def _has_arrived(arrival: Arrival, kind: str, subject: UUID, at: datetime) -> bool:
    if kind == DEMO:
        return subject == arrival.account and at > arrival.checked.exported_at
    return subject in arrival.new.get(kind, ())
