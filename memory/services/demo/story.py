"""What the demo store tells, read from its files, and the marks by which everything that it made is found again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memory.models import Account, ImportRun
from memory.models.vocabulary import OutcomeSource

ACCOUNT: Final = "demo"
RUN: Final = "the demo store"  # name of the import run that its lessons came from: while it is there, so is the demo
PATH: Final = "demo"  # how journals name this way of writing lessons
MARK: Final = "demo:"  # begins the idempotency keys of the interactions and decisions of the story
KEY: Final = "demo, "  # begins the names of its API keys
PERSON: Final = "demo-ana"  # who decides in it; nobody can log in as her
PROJECTS: Final = {"api": "Shop API", "web": "Shop web site"}
SOURCES: Final = (OutcomeSource.CALLER.value, OutcomeSource.MACHINE.value)
FOLDER: Final = Path(__file__).resolve().parents[2] / "demo"
LESSONS: Final = FOLDER / "lessons.jsonl"
INTERACTIONS: Final = FOLDER / "interactions.jsonl"
BEGUN: Final = 90.0  # days ago: when the story begins

PREFERENCES: Final = (
    ("global", "answer-language", "I prefer short answers."),
    (f"project:{next(iter(PROJECTS))}", "test-first", "Write the failing test before the fix."),
    ("global", "commit-messages", "Begin commit messages with a verb in the imperative."),
)
FACTS: Final = (
    ("database", "The API runs on PostgreSQL 16 behind PgBouncer in transaction mode."),
    ("deploys", "Deploys start at 14:00 UTC on Tuesday and Thursday."),
)


@dataclass(frozen=True, kw_only=True)
class Word:
    """What one judge says."""

    source: str
    signal: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class About:
    """Work that shows what a lesson does. The story goes on without the step where it cannot come as it is told."""

    lesson: str  # its id in the file
    exposure: str = "served"  # or withheld, by a trial's coin or by quarantine, or probation
    with_it: Word | None = None  # said where the lesson was handed out
    without_it: Word | None = None  # and where it was not


@dataclass(frozen=True, kw_only=True)
class Step:
    """A piece of work with what is said of it; or, without a task, what is said later of the work of the same key."""

    key: str
    ago: float  # days
    task: str = ""
    project: str | None = None
    session: str | None = None
    model: str = ""
    tier: str = ""
    k: int = 5
    answer: str = ""
    says: tuple[Word, ...] = ()
    about: About | None = None


@dataclass(frozen=True, kw_only=True)
class Told:
    """A lesson of the story."""

    ref: str  # its id in the file
    text: str
    ago: float = BEGUN  # days
    learned_from: str = ""  # the work whose answer says it; it waits for a reviewer


def read_lessons() -> list[Told]:
    """The lessons, in order: first those that were there from the beginning."""
    return [Told(**line) for line in _lines(LESSONS)]


def read_steps() -> list[Step]:
    """The script, in order."""
    return [_step(line) for line in _lines(INTERACTIONS)]


def _step(line: dict[str, Any]) -> Step:
    about = line.pop("about", None)
    if about is not None:
        about = About(**about | {name: Word(**about[name]) for name in ("with_it", "without_it") if name in about})
    says = tuple(Word(**word) for word in line.pop("says", ()))
    return Step(**line, says=says, about=about)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def is_there() -> bool:
    """Whether the store holds demo data."""
    return ImportRun.objects.filter(name=RUN).exists()


def run() -> ImportRun | None:
    """The run that the demo's lessons came from; None where none is."""
    return ImportRun.objects.filter(name=RUN).first()


def account() -> Account | None:
    """The account of the demo that is there; None where none is."""
    return Account.objects.filter(slug=ACCOUNT).first() if is_there() else None
