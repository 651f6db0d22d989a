"""What the columns of the file may hold, and why a row with something else is not taken over.

SQLite keeps any value in any column, so each is looked at. A value that has to be guessed is refused with its row.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from re import compile as pattern
from re import sub
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from memory.embedding import Vectors
from memory.models.scope import SLUG
from memory.rules.text import clean

LONGEST_ID: Final = 200  # characters
AHEAD: Final = timedelta(days=1)  # how far clocks may differ
LARGEST_DIMENSION: Final = 4000  # what a vector index takes
LARGEST_INTEGER: Final = 2**31 - 1
PROJECT: Final = "project:"  # begins the scope of a preference, and the key of a session's summary for a project
_SLUG: Final = pattern(SLUG)
#: The old words for where a task is, and ours.
STATUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pending": "pending", "todo": "pending", "open": "pending",
        "in_progress": "in_progress", "doing": "in_progress", "active": "in_progress",
        "blocked": "blocked",
        "done": "done", "complete": "done", "completed": "done",
        "canceled": "cancelled", "cancelled": "cancelled",
    }
)  # fmt: skip


class Skipped(ValueError):
    """A row is not taken over; the word says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def ident(value: Any) -> str:
    """An id. Raises Skipped."""
    if not isinstance(value, str) or not value:
        raise Skipped("no_id")
    if len(value) > LONGEST_ID or clean(value) != value:
        raise Skipped("bad_id")
    return value


def optional_id(value: Any) -> str | None:
    """An id of another row, or None where none is named; what can be no id names a row that is not there."""
    try:
        return ident(value)
    except Skipped:
        return None


def said(value: Any, limit: int | None = None) -> str:
    """A text that may be missing, cut at `limit` characters. Raises Skipped for what is no text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Skipped("bad_value")
    return clean(value)[:limit]


def needed(value: Any) -> str:
    """A text that says something. Raises Skipped."""
    text = said(value)
    if not text.strip():
        raise Skipped("empty_text")
    return text


def moment(value: Any, now: datetime) -> datetime:
    """A time as SQLite writes it or as ISO 8601, in UTC unless it says otherwise. Raises Skipped."""
    try:
        found = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
        found = found.replace(tzinfo=UTC) if found and found.tzinfo is None else found
        if found is None or not datetime(1970, 1, 2, tzinfo=UTC) <= found <= now + AHEAD:
            raise Skipped("bad_timestamp")
        return found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, Skipped) else Skipped("bad_timestamp") from None


def count(value: Any) -> int | None:
    """A number of tokens; None for what can be none."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= LARGEST_INTEGER else None


def whole(value: Any, *, least: int, most: int = LARGEST_INTEGER) -> int:
    """A whole number in a range. Raises Skipped."""
    if not isinstance(value, int) or not least <= value <= most:
        raise Skipped("bad_value")
    return value


def share(value: Any) -> float:
    """A number in [0, 1]. Raises Skipped."""
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Skipped("bad_value")
    return float(value)


def vector(blob: Any, dimension: Any) -> Vectors:
    """A vector of little-endian float32, made a unit vector. Raises Skipped with what is wrong with it."""
    if not isinstance(blob, bytes) or not blob or len(blob) % 4:
        raise Skipped("corrupt")
    found = np.frombuffer(blob, dtype="<f4").astype(np.float64)
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension != len(found):
        raise Skipped("dimension_lies")
    if len(found) > LARGEST_DIMENSION:
        raise Skipped("too_many_dimensions")
    if not np.isfinite(found).all():
        raise Skipped("corrupt")
    length = math.sqrt(float(found @ found))
    if length == 0:
        raise Skipped("zero")
    unit: Vectors = (found / length).astype(np.float32)
    return unit


def project_slug(name: str) -> str:
    """The slug of a project that has a free name there. Two names never share one: what they keep apart stays apart."""
    if _SLUG.fullmatch(name):
        return name
    mark = sha256(name.encode("utf-8", "replace")).hexdigest()[:10]
    words = sub(r"[^a-z0-9_.-]+", "-", name.casefold()).strip("-_.")[:50]
    return f"{words}-{mark}" if words else f"project-{mark}"


def old_digest(text: str) -> str | None:
    """SHA-256 by which the old store knows a rejected value: case folded, white space collapsed; None for nothing."""
    normal = sub(r"\s+", " ", text.strip().casefold())
    return sha256(normal.encode("utf-8", "replace")).hexdigest() if normal else None
