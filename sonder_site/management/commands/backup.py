"""Copies the store into a folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, console
from sonder_site.backup import back_up


class Command(BaseCommand):
    help = "Writes the database, the ledger of erasures and the installation's secret into a new folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="where the backup's own folder is made")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        try:
            with console.status("copying the database"):
                made = back_up(options["folder"])
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            as_json(self, {"folder": str(made)})
        else:
            self.stdout.write(f"Backed up into {made}. It holds everything, the secret among it: keep it as closely.")
