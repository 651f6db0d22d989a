"""Announcing work. The table is the queue; a nudge only makes it sooner, and losing one loses nothing."""

from typing import Protocol
from uuid import UUID

from django.db import transaction


class Nudge(Protocol):
    """Passes a work item's name and id to whoever does the work in the background. Must not raise."""

    def __call__(self, name: str, subject: UUID) -> None: ...


def silence(name: str, subject: UUID) -> None:
    """The default: nobody listens, and the sweep finds the row."""


_listener: Nudge = silence


def bind(listener: Nudge) -> Nudge:
    """Sets who is told; returns who was told before."""
    global _listener
    before, _listener = _listener, listener
    return before


def nudge(name: str, subject: UUID) -> None:
    """Tells the listener once the current transaction has committed."""
    transaction.on_commit(lambda: _listener(name, subject))
