"""Lessons that must not go while something is written about them."""

from collections.abc import Collection
from uuid import UUID

from memory.models.sql import fetch


def hold(ids: Collection[UUID]) -> set[UUID]:
    """Keeps lessons from being merged or erased until the transaction ends; what has gone since is not among them."""
    rows = fetch("SELECT id FROM lesson WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE", [list(ids)])
    return {pk for (pk,) in rows}
