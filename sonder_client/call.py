"""A request as a value: where it goes, what it carries, and what comes back. Nothing here sends anything.

Ids may be given as UUIDs or as their texts; a text that is none raises ValueError.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")
Id = UUID | str
PAGE: Final = 200  # rows of one answer, the most that the server gives


class Unset(Enum):
    """What is left out stays as it is, which None, a value, does not say."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request and the type of its answer."""

    method: str
    path: str  # below /api/v1/
    answer: type[T]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None  # of a write; one is made where it is None

    @property
    def writes(self) -> bool:
        return self.method != "GET"


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[T]):
    """A list that comes in pages."""

    path: str
    row: type[T]
    query: Mapping[str, str] = field(default_factory=dict)


def id_text(name: Id) -> str:
    """The id as it stands in an address."""
    return str(name if isinstance(name, UUID) else UUID(name))


def given(**values: object) -> dict[str, Any]:
    """Those that are not None or UNSET, as JSON."""
    return told(**{name: value for name, value in values.items() if value is not None})


def told(**values: object) -> dict[str, Any]:
    """Those that are not UNSET, as JSON."""
    return {name: _plain(value) for name, value in values.items() if value is not UNSET}


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def query_of(**values: object) -> dict[str, str]:
    """Those that are not None, as parameters of an address."""
    words = {True: "true", False: "false"}
    return {k: words[v] if isinstance(v, bool) else str(v) for k, v in given(**values).items()}
