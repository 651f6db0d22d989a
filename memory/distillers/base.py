"""What every distiller offers, and how it says that it could not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.errors import SonderError
from memory.rules.summary import Turn


@dataclass(frozen=True, kw_only=True)
class Material:
    """A finished interaction. All of it is data that others wrote."""

    task: str  # what was to be done
    response: str  # what the agent answered
    known: tuple[str, ...] = ()  # lessons that were handed out for it, which are not to be distilled again
    error: str = ""  # what went wrong, where a warning is wanted; empty where a lesson is


class Distiller(Protocol):
    """Proposes one sentence. Safe to share between threads."""

    def propose(self, material: Material) -> str | None:
        """The sentence, or None if the interaction teaches nothing.

        Raises DistillerUnavailable if there is no answer, UnusableAnswer if there is one that nobody can use.
        """


class Summariser(Protocol):
    """Says what turns of work were about. Safe to share between threads."""

    def __call__(self, turns: Sequence[Turn], most: int) -> str:
        """In at most `most` characters.

        Raises DistillerUnavailable if it cannot now, UnusableAnswer if it never will.
        """


class DistillerUnavailable(SonderError):
    """The distiller gives no answer now; it may later."""

    title = "The distiller is unavailable"

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after  # seconds to leave it alone, where it said so


class UnusableAnswer(SonderError):
    """The distiller answered, and the answer is empty, malformed, too long or a refusal."""

    title = "The distiller's answer is of no use"
