"""Brings a store back from a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, console
from sonder_site.backup import restore


class Command(BaseCommand):
    help = (
        "Fills an empty database from a backup, migrates it to this release, and repeats every erasure that was made "
        "since: what was erased stays erased."
    )
    requires_system_checks = []  # they need a migrated database, and this command begins with an empty one

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a backup's own folder")
        parser.add_argument(
            "--ledger", type=Path, action="append", default=[], help="another erasures.ndjson to hold it against"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        for path in options["ledger"]:
            if not path.is_file():
                raise CommandError(f"--ledger: there is no file {path}.")
        try:
            with console.status("restoring"):
                done = restore(options["folder"], options["ledger"])
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            as_json(self, {"made_at": done.made_at, "erased_again": done.erased_again})
            return
        self.stdout.write(f"Restored the store of {done.made_at}; {done.erased_again} erasures since were repeated.")
        self.stdout.write("Look at it with: manage.py doctor")
