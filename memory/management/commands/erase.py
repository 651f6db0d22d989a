"""Erasing a record with everything that came from it."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json
from memory.services.erasure import KINDS, erase


class Command(BaseCommand):
    help = "Erases a record and all that was derived from it. Says what would go, and does it only with --apply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=list(KINDS))
        parser.add_argument("id", type=UUID)
        parser.add_argument("--apply", action="store_true", help="really erase; there is no way back")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        try:
            erased = erase(
                options["kind"], options["id"], account_id=None, actor="system", dry_run=not options["apply"]
            )
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        if options["json"]:
            as_json(self, vars(erased))
            return
        for table, n in erased.counts.items():
            self.stdout.write(f"{n:>8}  {table}")
        self.stdout.write("Nothing was erased; --apply does it." if erased.dry_run else "Erased.")
