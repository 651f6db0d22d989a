"""What all models share: UUIDv7 keys, record time set by the database, closed vocabularies, append-only journals."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone
from pgtrigger.compiler import Trigger as CompiledTrigger
from pgtrigger.compiler import UpsertTriggerSql
from uuid_utils.compat import uuid7

SHA256 = r"^[0-9a-f]{64}$"
# Who did it: the system itself, an API key (by prefix) or a person (by user id).
ACTOR = r"^(system|api_key:.+|user:.+)$"

# True only inside the transaction that an erasure opened: the setting holds that transaction's own id.
ERASING = "current_setting('sonder.erasure', true) = pg_current_xact_id()::text"


_told: ContextVar[datetime | None] = ContextVar("told", default=None)


@contextmanager
def told_at(moment: datetime) -> Iterator[None]:
    """For a story that is told afterwards: what is recorded meanwhile happened at `moment`. Demo data are such a story.

    Rows get that time and an id of that time when they are inserted; no row that is there can be moved.
    """
    before = _told.set(moment)
    try:
        yield
    finally:
        _told.reset(before)


def present() -> datetime:
    """Now; within a story the moment that is being told."""
    return _told.get() or timezone.now()


def recorded() -> datetime | Now:
    """For an update: the database's own clock; within a story the moment that is being told."""
    return _told.get() or Now()


def new_id() -> uuid.UUID:
    """A time-ordered UUIDv7 (RFC 9562)."""
    made, moment = uuid7(), _told.get()
    if moment is None:
        return made
    # The first 48 bits are the time in milliseconds.
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | made.int & (1 << 80) - 1)


if TYPE_CHECKING:
    DateTimeField = models.DateTimeField[datetime | Combinable, datetime]
else:
    DateTimeField = models.DateTimeField


class RecordTime(DateTimeField):
    """When the database recorded a row; within a story, when that happened."""

    def deconstruct(self) -> Any:
        """To migrations a column like any other of its type."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        moment = _told.get()
        if add and moment is not None:
            setattr(model_instance, self.attname, moment)
        return super().pre_save(model_instance, add)


def sum_field() -> "models.DecimalField[Decimal, Decimal]":
    """A running sum: weights have 3 places and expectations 12, so 15 hold each product without rounding."""
    return models.DecimalField(max_digits=30, decimal_places=15)


class Recorded(models.Model):
    """A row with a UUIDv7 key and the time at which the database recorded it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    created_at = RecordTime(db_default=Now(), editable=False)

    class Meta:
        abstract = True


def one_of(table: str, column: str, values: Iterable[str]) -> models.CheckConstraint:
    """CHECK that a column holds a word of a closed vocabulary."""
    words = list(values)
    return models.CheckConstraint(
        name=f"{table}_{column}_vocabulary",
        condition=Q(**{f"{column}__in": words}),
        violation_error_message=f"{column} must be one of {', '.join(words)}.",
    )


def matches(table: str, column: str, pattern: str, what: str) -> models.CheckConstraint:
    """CHECK that a text column has a shape; NULL passes where the column allows it."""
    return models.CheckConstraint(
        name=f"{table}_{column}_shape",
        condition=Q(**{f"{column}__regex": pattern}),
        violation_error_message=f"{column} must be {what}.",
    )


def not_empty(table: str, column: str) -> models.CheckConstraint:
    """CHECK that a text says something."""
    return models.CheckConstraint(
        name=f"{table}_{column}_not_empty", condition=~Q(**{column: ""}), violation_error_message=f"{column} is empty."
    )


def together(table: str, name: str, columns: Iterable[str]) -> models.CheckConstraint:
    """CHECK that columns are all null or all set."""
    keys = list(columns)
    unset, filled = Q(**{f"{c}__isnull": True for c in keys}), Q(**{f"{c}__isnull": False for c in keys})
    return models.CheckConstraint(
        name=f"{table}_{name}_together",
        condition=unset | filled,
        violation_error_message=f"{', '.join(keys)} are set together or not at all.",
    )


def between(table: str, column: str, low: float, high: float, *, open_ends: bool = False) -> models.CheckConstraint:
    """CHECK that a number lies in a range; NULL passes where the column allows it."""
    above, below = ("gt", "lt") if open_ends else ("gte", "lte")
    return models.CheckConstraint(
        name=f"{table}_{column}_range",
        condition=Q(**{f"{column}__{above}": low}) & Q(**{f"{column}__{below}": high}),
        violation_error_message=f"{column} must be between {low} and {high}.",
    )


def at_least(table: str, column: str, low: int) -> models.CheckConstraint:
    """CHECK that a number is not below a bound."""
    return models.CheckConstraint(
        name=f"{table}_{column}_at_least",
        condition=Q(**{f"{column}__gte": low}),
        violation_error_message=f"{column} must be at least {low}.",
    )


def refuse(constraint: str, sentence: str) -> str:
    """PL/pgSQL that refuses like a constraint does, so that Django raises IntegrityError with the name."""
    return (
        f"RAISE EXCEPTION '{sentence}' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = '{constraint}';"
    )


class SealedTriggerSql(UpsertTriggerSql):
    """A trigger without the library's own door: the setting `pgtrigger.ignore` does not switch it off."""

    def get_template(self) -> str:
        template = super().get_template()
        door, rule = template.index("IF ({ignore_func_name}"), template.index("{func}")
        return template[:door] + template[rule:]


class SealedTrigger(pgtrigger.Trigger):
    """A trigger that nothing but its own rule lets through."""

    def compile(self, model: models.Model) -> CompiledTrigger:
        _, _, arguments = super().compile(model).sql.deconstruct()
        return CompiledTrigger(
            name=self.name, sql=SealedTriggerSql(**{key: arguments[key] for key in arguments if key != "hash"})
        )


def append_only(table: str, *, may_change: str | None = None) -> SealedTrigger:
    """No UPDATE (but of one column, where named) and no DELETE outside an erasure."""
    allowed = ERASING
    if may_change:
        same = f"(to_jsonb(NEW) - '{may_change}') = (to_jsonb(OLD) - '{may_change}')"
        allowed = f"{ERASING} OR (TG_OP = 'UPDATE' AND {same})"
    return SealedTrigger(
        name=f"{table}_append_only",
        when=pgtrigger.Before,
        operation=pgtrigger.Update | pgtrigger.Delete,
        func=f"""
            IF {allowed} THEN
                RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
            END IF;
            {refuse(f"{table}_append_only", f"{table} is append-only")}
        """,
    )
