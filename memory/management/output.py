"""How commands talk: tables and bars for people, one JSON document for programs."""

import json
from typing import Any

from django.core.management.base import BaseCommand
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console(stderr=True)


def progress() -> Progress:
    """A bar on standard error, so that standard output stays clean for a pipe."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )


def as_json(command: BaseCommand, value: Any) -> None:
    """One document on standard output."""
    command.stdout.write(json.dumps(value, indent=2, sort_keys=True, default=str))
