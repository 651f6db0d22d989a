"""Whose figures, and since when: the conditions that every query of a report shares."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.models.sql import fetch
from memory.services.ids import first_id
from memory.services.scoping import lesson_account

WEEKS = 4
WINDOW = timedelta(weeks=WEEKS)  # recent: long enough for thirty outcomes of a small store, short enough to be news


@dataclass(frozen=True, kw_only=True)
class View:
    """What one reader may see at one moment."""

    account_id: UUID | None  # None: an operator, who sees the whole installation
    now: datetime

    @property
    def since(self) -> datetime:
        return self.now - WINDOW

    @property
    def own(self) -> str:
        """SQL: the interaction `i` is the reader's."""
        return "true" if self.account_id is None else "i.account_id = %(account)s"

    @property
    def recent(self) -> str:
        """SQL: the interaction `i` is the reader's, and was begun in the window. The id lets an index find it."""
        return f"{self.own} AND i.id >= %(first)s AND i.created_at >= %(since)s AND i.created_at <= %(now)s"

    def visible(self, table: str) -> str:
        """SQL: the row of a table with lessons' scope is the reader's to count."""
        return "true" if self.account_id is None else f"{table}.account_id IS NOT DISTINCT FROM %(scope)s"

    def fetch(self, statement: str, **more: object) -> list[tuple[Any, ...]]:
        """The rows of a query that may use the conditions above."""
        shared = {
            "account": self.account_id,
            "scope": lesson_account(self.account_id),
            "first": first_id(self.since),
            "since": self.since,
            "now": self.now,
        }
        return fetch(statement, {**shared, **more})
