"""A store to look at before an agent has worked with it."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.progress import Progress

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.services import erasure
from memory.services.demo import people, play, stage, story
from memory.services.setup import open_space


class Command(BaseCommand):
    help = (
        "Fills the account 'demo' with 60 lessons, good and bad, with work that was judged, and with questions for a "
        "reviewer. Can be interrupted and run again; twice is once. With --remove all of it goes again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="take everything back that it made")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        if options["remove"]:
            self._remove(options["json"])
            return
        note = open_space()
        try:
            place = stage.set_up()
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        try:
            with progress() as bar:
                _show(bar, "lessons", play.store_lessons(place))
                _show(bar, "interactions", play.play(place))
                _show(bar, "people", people.review(place))
        except KeyboardInterrupt:
            raise CommandError("Interrupted. Run it again to go on.", returncode=130) from None
        told = stage.summary(place)
        if options["json"]:
            as_json(self, told | ({"note": note} if note else {}))
        else:
            self._tell(told, note)

    def _remove(self, as_document: bool) -> None:
        account = story.account()
        if account is None:
            raise CommandError("There are no demo data.")
        erased = erasure.erase("demo", account.pk, account_id=None, actor="system")
        if as_document:
            as_json(self, vars(erased))
        else:
            self.stdout.write(f"Removed {sum(erased.counts.values()):,} rows of demo data.")

    def _tell(self, told: dict[str, Any], note: str) -> None:
        self.stdout.write(
            f"The account '{told['account']}' has {told['lessons']} lessons and {told['interactions']} interactions, "
            f"{told['not_judged']} of them without an outcome.\n"
            f"{told['outcomes']} outcomes: {told['wins']} wins, {told['losses']} losses, "
            f"{told['corrected']} of them corrections, and {told['retracted']} retracted.\n"
            f"{told['preferences']} preferences, {told['facts']} facts and {sum(told['questions'].values())} questions "
            "for a reviewer."
        )
        for word in ("on trial", "quarantined", "rehabilitated"):
            for text in told[word.replace(" ", "_")]:
                self.stdout.write(f"{word}: {text}")
        if note:
            self.stdout.write(f"Not embedded yet: {note}")
        self.stdout.write(
            f"To work with it: 'manage.py create_api_key {told['account']} --source caller --scopes loop,read'. "
            "To look at it: /review/demo/. To take it back: 'manage.py seed_demo --remove'."
        )


def _show(bar: Progress, name: str, steps: Iterator[tuple[int, int]]) -> None:
    shown = bar.add_task(name)
    for done, total in steps:
        bar.update(shown, completed=done, total=total)
