"""An exported account comes back, or to another installation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.services.setup import open_space
from memory.services.transfer.arrival import Arrival
from memory.services.transfer.reading import import_account


class Command(BaseCommand):
    help = (
        "Imports what `export` wrote, all of it or nothing. What is here stays as it is; what was erased here stays "
        "erased, and what was rejected here stays out. Keys come along as names that open nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        path: Path = options["file"]
        open_space()
        try:
            arrival = self._run(path)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
        except SonderError as refusal:
            raise CommandError(f"{path}: {refusal.detail} Nothing was imported.") from None
        told = {"account": arrival.checked.slug, **arrival.as_json()}
        if options["json"]:
            as_json(self, told)
        else:
            self._tell(told)

    def _run(self, path: Path) -> Arrival:
        arrival: Arrival | None = None
        with progress() as bar:
            shown: dict[str, Any] = {}
            for kind, n, so_far in import_account(path):
                arrival = so_far
                if kind not in shown:
                    shown[kind] = bar.add_task(kind, total=None)
                bar.update(shown[kind], completed=n)
        assert arrival is not None, "an import that ends has arrived"
        return arrival

    def _tell(self, told: dict[str, Any]) -> None:
        self.stdout.write(f"The account {told['account']} is here.")
        for name, moved in told["kinds"].items():
            reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(moved["skipped"].items()))
            line = (
                f"{name:<24} {moved['rows']:>8} rows {moved['imported']:>8} imported {moved['already']:>8} here before"
            )
            self.stdout.write(f"{line}  {'skipped: ' + reasons if reasons else ''}".rstrip())
        for table, n in told["erased"].items():
            self.stdout.write(f"erased again             {n:>8} {table}")
        if "unembedded" in told:
            self.stdout.write(f"Not embedded yet: {told['unembedded']}")
