"""Erasing a record: every row and every derived copy goes, and a content-free record of it stays.

Rejecting a value is another verb (see ``rejection``): there the lesson leaves retrieval and a tombstone remembers.
Here nothing remembers. A dry run does all of it and takes it back, so its counts are exact.
"""

from memory.services.erasure.run import KINDS, Erased, erase, ledger_path, missing_from_ledger, read_ledger, sync_ledger

__all__ = ["KINDS", "Erased", "erase", "ledger_path", "missing_from_ledger", "read_ledger", "sync_ledger"]
