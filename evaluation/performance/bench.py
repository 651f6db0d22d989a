"""What every measurement is handed."""

from dataclasses import dataclass

from django.db import connection
from psycopg import Connection, Cursor

from evaluation.performance.corpus import Tasks
from evaluation.performance.store import Shape
from memory.models import EmbeddingSpace
from memory.search import EmbeddedQuery, Scope

EVERYTHING = Scope(account_id=None, reviewed_only=False)
REVIEWED = Scope(account_id=None, reviewed_only=True)
TOP = 20
DEPTH = 40  # what each search contributes to an answer of five


@dataclass(frozen=True, kw_only=True)
class Bench:
    """An open store and what to ask it."""

    shape: Shape
    space: EmbeddingSpace
    tasks: Tasks
    common: list[str]  # tasks of frequent words alone

    @property
    def lessons(self) -> int:
        return self.shape.lessons

    @property
    def judged(self) -> bool:
        """Whether the bars of speed hold at this size: in a tiny store a statement costs little but its fixed part."""
        return self.lessons >= 10_000

    def query(self, i: int) -> EmbeddedQuery:
        return EmbeddedQuery(text=self.tasks.texts[i], space=self.space, vector=self.tasks.vectors[i])


def raw_cursor() -> "Cursor[tuple[object, ...]]":
    """A cursor of psycopg's own on Django's connection: no wrapper, parameters apart from the statement."""
    connection.ensure_connection()
    driver: Connection[tuple[object, ...]] = connection.connection
    return Cursor(driver)
