"""An account, whole, as lines of JSON."""

import os
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management.output import as_json, progress
from memory.management.scope import existing_account
from memory.models import Account
from memory.services.transfer.writing import export

PRIVATE = 0o600  # the file holds everything that the account holds


class Command(BaseCommand):
    help = "Exports an account: one row a line as JSON, as of one moment. No key and no password is in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("account", help="slug of the account")
        parser.add_argument("--output", type=Path, help="the file; standard output unless given")
        parser.add_argument("--json", action="store_true", help="tell the counts as one JSON document; needs --output")

    def handle(self, **options: Any) -> None:
        path: Path | None = options["output"]
        account = existing_account(options["account"])
        if path is None and options["json"]:
            raise CommandError("Standard output is the export itself. Name a file with --output.")
        counts = self._to_file(account, path) if path else self._run(account, self.stdout.write)
        if options["json"]:
            as_json(self, {"account": account.slug, "counts": dict(counts)})
        elif path:
            self.stdout.write(f"{sum(counts.values())} rows of {account.slug} are in {path}.")

    def _to_file(self, account: Account, path: Path) -> Counter[str]:
        """Written beside its place and then moved there: what has the name is whole."""
        part = path.with_name(f"{path.name}.part")
        try:
            with os.fdopen(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "w", encoding="utf-8"
            ) as file:
                counts = self._run(account, file.write)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from None
        return counts

    def _run(self, account: Account, write: Any) -> Counter[str]:
        counts = Counter[str]()
        with progress() as bar:
            shown: dict[str, Any] = {}
            for kind, n in export(account, write):
                counts[kind] = n
                if kind not in shown:
                    shown[kind] = bar.add_task(kind, total=None)
                bar.update(shown[kind], completed=n)
        return counts
