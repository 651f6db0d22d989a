"""Is the database what the migrations made? A dump restored in part, or a hand on it, takes rules away in silence.

What is compared is whether a thing is there and in force, by its name or its columns; not its definition.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pgtrigger
from django.apps import apps
from django.db import connection
from django.db.models import Field, Model
from pgtrigger.registry import registered

from memory.models.sql import fetch

Found = Mapping[str, Any]  # of `get_constraints`: constraints and indexes of a table, by name


def missing() -> list[str]:
    """What is not there or not in force, as '<table>: <what>', in the order of the tables; empty if all is well."""
    return sorted({*_missing_from_tables(), *_triggers(), *_not_in_force()})


def _missing_from_tables() -> Iterator[str]:
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        for model in apps.get_models(include_auto_created=True):
            table = model._meta.db_table
            if not model._meta.managed or model._meta.proxy:
                continue
            if table not in tables:
                yield f"{table}: the table"
                continue
            found = connection.introspection.get_constraints(cursor, table)
            columns = {c.name: c for c in connection.introspection.get_table_description(cursor, table)}
            yield from (f"{table}: {what}" for what in (*_named(model, found), *_columns(model, columns, found)))


def _named(model: type[Model], found: Found) -> Iterator[str]:
    """Constraints and indexes that the model names, and columns that it declares unique together."""
    for item in (*model._meta.constraints, *model._meta.indexes):
        if item.name not in found:
            yield item.name
    column_of = {field.name: str(field.column) for field in model._meta.concrete_fields}
    for names in model._meta.unique_together:
        columns = [column_of[name] for name in names]
        if not any(one["unique"] and one["columns"] == columns for one in found.values()):
            yield f"unique ({', '.join(columns)})"


def _columns(model: type[Model], columns: Found, found: Found) -> Iterator[str]:
    """Columns, and what each of them promises by itself."""
    for field in model._meta.local_concrete_fields:
        column = str(field.column)
        if column not in columns:
            yield f"column {column}"
            continue
        if not (field.null or field.generated) and columns[column].null_ok:
            yield f"not null ({column})"
        for word, holds in _promises(field):
            if not any(one["columns"][:1] == [column] and holds(one) for one in found.values()):
                yield f"{word} ({column})"


def _promises(field: "Field[Any, Any]") -> Iterator[tuple[str, Any]]:
    """Each promise, and what a constraint that keeps it looks like."""
    if field.primary_key:
        yield "primary key", lambda one: one["primary_key"]
    elif field.unique:
        yield "unique", lambda one: one["unique"] and len(one["columns"]) == 1
    elif getattr(field, "db_index", False):
        yield "index", lambda one: one["index"] or one["unique"]
    if field.remote_field is not None and getattr(field, "db_constraint", False):
        yield "foreign key", lambda one: one["foreign_key"]


def _triggers() -> Iterator[str]:
    for model, trigger in registered():
        status, enabled = trigger.get_installation_status(model)
        if status != pgtrigger.core.UNALLOWED and (status != pgtrigger.core.INSTALLED or not enabled):
            reason = {pgtrigger.core.UNINSTALLED: "", pgtrigger.core.OUTDATED: ", which is another"}
            yield f"{model._meta.db_table}: trigger {trigger.name}{reason.get(status, ', which is switched off')}"


def _not_in_force() -> Iterator[str]:
    """Constraints that PostgreSQL does not vouch for, and indexes that it does not use."""
    for table, name in fetch(
        """
        SELECT conrelid::regclass::text, conname || ', which is not validated' FROM pg_constraint
        WHERE NOT convalidated AND connamespace = current_schema()::regnamespace
        UNION ALL
        SELECT i.indrelid::regclass::text, c.relname || ', which is invalid' FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace
            AND c.relname NOT LIKE 'lesson\\_embedding\\_%%'
        """
    ):
        yield f"{table}: {name}"
