"""Ids as a clock: a UUIDv7 begins with its time, so that the primary key finds what is newer than a moment."""

from datetime import datetime
from uuid import UUID


def first_id(at: datetime) -> UUID:
    """The bound between older and newer UUIDv7 (RFC 9562, 5.7): what was made before `at` is below it. To 1 ms."""
    return UUID(int=int(at.timestamp() * 1000) << 80)
