"""Whole rows by plain SQL, for the few statements of every request: the ORM would compile each of them anew.

Compiling a queryset and what is around it takes the ORM longer than PostgreSQL takes to run it. The models stay the one
place that says which columns there are, and every value passes through its field as it does in the ORM.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connection, models
from django.db.models.expressions import DatabaseDefault

from memory.models.sql import execute

M = TypeVar("M", bound=models.Model)


class Rows(Generic[M]):
    """A model's rows under an alias of a statement: `columns` goes into its SELECT, `read` makes what comes out."""

    def __init__(self, model: type[M], alias: str) -> None:
        self._model = model
        self._alias = alias

    @cached_property
    def _fields(self) -> "list[models.Field[Any, Any]]":
        return list(self._model._meta.concrete_fields)

    @cached_property
    def columns(self) -> str:
        """The columns as SQL, in the order in which `read` takes them."""
        return ", ".join(f'{self._alias}."{field.column}"' for field in self._fields)

    @cached_property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._fields)

    def read(self, row: Sequence[Any]) -> M:
        """The instance of a row of just these columns."""
        values = [self._python(field, value) for field, value in zip(self._fields, row, strict=True)]
        return self._model.from_db(connection.alias, self._names, values)

    @cached_property
    def _names(self) -> list[str]:
        return [field.attname for field in self._fields]

    @staticmethod
    def _python(field: "models.Field[Any, Any]", value: Any) -> Any:
        convert = getattr(field, "from_db_value", None)
        return value if convert is None else convert(value, None, connection)


def insert(instances: Sequence[M], conflict: str = "") -> None:
    """Inserts new instances of one model by one statement; what the database has a default for, it sets.

    `conflict` is SQL for rows that are there already, `ON CONFLICT ...`.

    All of them must leave the same columns to the database. A column that is empty in all of them is not sent.
    """
    if not instances:
        return
    meta = instances[0]._meta
    columns: list[str] = []
    values: list[list[Any]] = []  # by column
    for field in meta.concrete_fields:
        own = [field.pre_save(instance, add=True) for instance in instances]
        if all(value is None or isinstance(value, DatabaseDefault) for value in own):
            continue
        columns.append(f'"{field.column}"')
        values.append([field.get_db_prep_save(value, connection) for value in own])
    row = f"({', '.join(['%s'] * len(columns))})"
    execute(
        f'INSERT INTO "{meta.db_table}" ({", ".join(columns)}) VALUES {", ".join([row] * len(instances))} {conflict}',
        [value for own in zip(*values, strict=True) for value in own],
    )
    for instance in instances:
        instance._state.adding = False
        instance._state.db = connection.alias
