"""A store to look at before an agent has worked with it."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.progress import Progress

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.services import demo
from memory.services.setup import open_space


class Command(BaseCommand):
    help = (
        "Fills the account 'demo' with 60 lessons, good and bad, and with work that was judged, so that there are "
        "wins, losses and a quarantine to look at. Can be interrupted and run again; twice is once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        note = open_space()
        try:
            stage = demo.set_up()
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        try:
            with progress() as bar:
                _show(bar, "lessons", demo.store_lessons(stage))
                _show(bar, "interactions", demo.play(stage))
        except KeyboardInterrupt:
            raise CommandError("Interrupted. Run it again to go on.", returncode=130) from None
        told = demo.summary(stage)
        if options["json"]:
            as_json(self, told | ({"note": note} if note else {}))
        else:
            self._tell(told, note)

    def _tell(self, told: dict[str, Any], note: str) -> None:
        self.stdout.write(
            f"The account '{told['account']}' has {told['lessons']} lessons and {told['interactions']} interactions, "
            f"{told['not_judged']} of them without an outcome.\n"
            f"{told['outcomes']} outcomes: {told['wins']} wins, {told['losses']} losses, "
            f"{told['corrected']} of them corrections, and {told['retracted']} retracted.\n"
            f"{told['preferences']} preferences and {told['facts']} facts."
        )
        for word in ("quarantined", "rehabilitated"):
            for text in told[word]:
                self.stdout.write(f"{word}: {text}")
        if note:
            self.stdout.write(f"Not embedded yet: {note}")
        self.stdout.write(
            f"To work with it: 'manage.py create_api_key {told['account']} --source caller --scopes loop,read'. "
            "To look at it: /admin/memory/lesson/."
        )


def _show(bar: Progress, name: str, steps: Iterator[tuple[int, int]]) -> None:
    shown = bar.add_task(name)
    for done, total in steps:
        bar.update(shown, completed=done, total=total)
