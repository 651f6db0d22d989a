"""The export in pieces, for whoever fetches it over a network that may be slow, hang or break off."""

from collections.abc import Generator
from contextlib import closing
from typing import Final

from memory.errors import Conflict
from memory.models import Account
from memory.models.sql import execute, fetch
from memory.services.transfer.writing import export, snapshot

#: Seconds for which a reader may take nothing. PostgreSQL then ends the transaction, so that nobody who went away holds
#: a connection and its snapshot; the file has no trailer, by which a reader sees that it was cut off.
PATIENCE: Final = 60


def stream(account: Account) -> Generator[bytes]:
    """An account's export, at most a few hundred rows at a time. The last piece ends with the trailer.

    Raises Conflict, before the first piece, while another export of the account is under way: each holds a connection
    for as long as its reader reads.
    """
    lines: list[str] = []
    with snapshot():
        ((alone,),) = fetch(
            "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"sonder:export:{account.pk}"]
        )
        if not alone:
            raise Conflict("An export of this account is under way. Ask again when it has ended.")
        execute(f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'")
        with closing(export(account, lines.append)) as steps:
            for _ in steps:
                if lines:
                    yield "".join(lines).encode()
                    lines.clear()
        yield "".join(lines).encode()
