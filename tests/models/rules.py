"""How the tests state a rule of the database: as data, one object a rule, named as PostgreSQL names it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import psycopg
import pytest
from django.db import IntegrityError, transaction

from tests.models.rows import Row

Test = TypeVar("Test", bound=Callable[..., None])

# What no list of rows can state, and a test of its own proves: triggers, and constraints that a trigger stands before.
PROVEN: set[str] = set()


def proves(*names: str) -> Callable[[Test], Test]:
    """Marks a test as the proof of these triggers or constraints."""
    PROVEN.update(names)
    return lambda test: test


@dataclass(frozen=True, kw_only=True)
class Check:
    """One CHECK constraint."""

    name: str
    table: str
    passes: Sequence[Row]  # changes to the minimal row that PostgreSQL accepts
    refused: Sequence[Row]  # changes that break this constraint


@dataclass(frozen=True, kw_only=True)
class Unique:
    """One unique constraint or index."""

    name: str
    table: str
    key: tuple[str, ...]  # columns
    passes: Sequence[Row]  # changes to a second row of equal key that let it in
    given: Row = field(default_factory=dict)  # changes to both rows


@dataclass(frozen=True, kw_only=True)
class Journal:
    """One append-only table."""

    table: str
    full: Row = field(default_factory=dict)  # sets the nullable columns, so that each can be changed
    may_change: tuple[str, ...] = ()  # columns that stay open to an UPDATE

    @property
    def name(self) -> str:
        """The trigger, and the constraint that it reports."""
        return f"{self.table}_append_only"


def broken_rule(error: BaseException) -> str | None:
    """What PostgreSQL says was broken: a constraint's name, or `table.column` where NULL is not allowed."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error):
        return None
    diag = cause.diag
    return diag.constraint_name or f"{diag.table_name}.{diag.column_name}"


@contextmanager
def refused(by: str) -> Iterator[None]:
    """The block raises IntegrityError and PostgreSQL names `by`; what the block did is rolled back."""
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        yield
    assert broken_rule(error.value) == by


def each(column: str, *values: object) -> tuple[Row, ...]:
    """One change for each value of one column."""
    return tuple({column: value} for value in values)


def words(table: str, column: str, *vocabulary: str, beside: Mapping[str, Row] | None = None) -> Check:
    """A closed vocabulary; `beside` holds what else a row with a given word must say."""
    first = vocabulary[0]
    return Check(
        name=f"{table}_{column}_vocabulary",
        table=table,
        passes=[{column: word, **(beside or {}).get(word, {})} for word in vocabulary],
        refused=each(column, "", "invented", first.upper(), f"{first} "),
    )


def not_empty(table: str, column: str) -> Check:
    """A text that says something."""
    return Check(name=f"{table}_{column}_not_empty", table=table, passes=each(column, "x"), refused=each(column, ""))


def shape(table: str, column: str, passes: Sequence[str], broken: Sequence[str]) -> Check:
    """A text of a certain form."""
    return Check(
        name=f"{table}_{column}_shape", table=table, passes=each(column, *passes), refused=each(column, *broken)
    )


def digests(table: str, column: str) -> Check:
    """A SHA-256 in 64 lower-case hexadecimal digits."""
    return shape(table, column, ["0123456789abcdef" * 4], ["", "a" * 63, "A" * 64, "g" * 64, "a" * 63 + "\n"])


def actors(table: str) -> Check:
    """The system, an API key by its prefix or a person by number."""
    broken = ["", "Ana", "user:", "api_key:", "system:1", "a user:7"]
    return shape(table, "actor", ["system", "api_key:k1", "user:7"], broken)


def at_least(table: str, column: str, low: int) -> Check:
    """A whole number that is not below a bound."""
    name = f"{table}_{column}_at_least"
    return Check(name=name, table=table, passes=each(column, low, low + 1), refused=each(column, low - 1))


def within(table: str, column: str, passes: Sequence[object], broken: Sequence[object], **beside: object) -> Check:
    """A number in a range; `beside` holds what else a row with this column must say."""
    return Check(
        name=f"{table}_{column}_range",
        table=table,
        passes=[{column: value, **beside} for value in passes],
        refused=[{column: value, **beside} for value in broken],
    )


def together(table: str, name: str, columns: Row, **beside: object) -> Check:
    """Columns that are all set or all null; `beside` holds what else a row with all of them must say."""
    without_one = [{**columns, **beside, column: None} for column in columns]
    return Check(name=f"{table}_{name}_together", table=table, passes=[{**columns, **beside}], refused=without_one)


def links(*columns: str) -> dict[str, Row]:
    """Foreign keys whose rows need no other change."""
    return {column: {} for column in columns}
