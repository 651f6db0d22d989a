"""A row as one line of JSON, and back, value by value: what goes out comes in as it was, to the last bit."""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import models
from pgvector import HalfVector
from pgvector.django import HalfVectorField

HALF: Final = "<f2"  # little-endian IEEE 754 binary16, as the column holds it


class Unreadable(ValueError):
    """A value that its column cannot hold; the message says what was expected."""


def line(kind: str, row: Mapping[str, Any]) -> str:
    """One line of a file."""
    return json.dumps({"kind": kind, "row": row}, ensure_ascii=False, separators=(",", ":")) + "\n"


def encode(field: "models.Field[Any, Any]", value: Any) -> Any:
    """A column's value as JSON has it."""
    if value is None or isinstance(field, models.JSONField):
        return value
    if isinstance(field, HalfVectorField):
        numbers = np.asarray(value.to_list() if isinstance(value, HalfVector) else value)
        return base64.b64encode(numbers.astype(HALF).tobytes()).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value


def decode(field: "models.Field[Any, Any]", value: Any) -> Any:
    """The value of a column, by its type. Raises Unreadable."""
    if value is None:
        if not field.null:
            raise Unreadable("may not be null")
        return None
    if isinstance(field, models.ForeignKey):
        return decode(field.target_field, value)
    read = next((read for kind, read in READERS.items() if isinstance(field, kind)), None)
    if read is None:
        raise Unreadable("is of a type that no file holds")
    found = read(value)
    if isinstance(field, models.CharField) and field.max_length is not None and len(found) > field.max_length:
        raise Unreadable(f"has over {field.max_length} characters")
    return found


def _uuid(value: Any) -> UUID:
    try:
        return UUID(_text(value))
    except ValueError:
        raise Unreadable("is no UUID") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value or value != value.encode("utf-8", "replace").decode():
        raise Unreadable("is no text that a column holds")
    return value


def _moment(value: Any) -> datetime:
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError:
        raise Unreadable("is no time") from None
    if found.tzinfo is None:
        raise Unreadable("is a time without a zone")
    return found


def _decimal(value: Any) -> Decimal:
    try:
        found = Decimal(_text(value))
    except InvalidOperation:
        raise Unreadable("is no decimal") from None
    if not found.is_finite():
        raise Unreadable("is no decimal")
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unreadable("is neither true nor false")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise Unreadable("is no whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise Unreadable("is no number")
    return float(value)


def _json(value: Any) -> Any:
    if "\\u0000" in json.dumps(value):
        raise Unreadable("holds a NUL")
    return value


def _vector(value: Any) -> HalfVector:
    try:
        found = np.frombuffer(base64.b64decode(_text(value), validate=True), dtype=HALF)
    except (binascii.Error, ValueError):
        raise Unreadable("is no vector") from None
    if not len(found) or not np.isfinite(found).all():
        raise Unreadable("is no vector")
    return HalfVector(found.astype(np.float32))


# The first kind that fits: a column of text is a CharField or a TextField, a whole number of any size an IntegerField.
READERS: Final[Mapping[type["models.Field[Any, Any]"], Any]] = {
    models.UUIDField: _uuid,
    models.DateTimeField: _moment,
    models.DecimalField: _decimal,
    models.BooleanField: _flag,
    models.IntegerField: _whole,
    models.FloatField: _number,
    models.JSONField: _json,
    HalfVectorField: _vector,
    models.CharField: _text,
    models.TextField: _text,
}
