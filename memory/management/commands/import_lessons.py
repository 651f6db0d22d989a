"""Lessons from a file of JSON lines or CSV."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.management.scope import lesson_scope
from memory.services.importing import Report, import_lines, read_lines, start_run
from memory.services.setup import open_space


class Command(BaseCommand):
    help = (
        'Imports lessons, one JSON object with a "text" (and optionally an "id") a line, or CSV with such columns '
        "where the file's name ends in .csv. Secrets, rejected values and duplicates are refused; what is merely vague "
        "is stored and flagged, or refused with --strict."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--account", help="slug; needed where lessons belong to accounts")
        parser.add_argument("--strict", action="store_true", help="refuse what a quality gate would flag")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        path: Path = options["file"]
        account_id = lesson_scope(options["account"])
        try:
            lines = list(read_lines(path))
            run = start_run(path)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise CommandError(f"{path} is not UTF-8.") from None
        except SonderError as refusal:
            raise CommandError(f"{path}, {refusal.detail} Nothing was imported.") from None
        open_space()
        report = Report()
        with progress() as bar:
            shown = bar.add_task("lessons", total=len(lines))
            steps = import_lines(iter(lines), run, account_id=account_id, strict=options["strict"])
            for done, so_far in steps:
                report = so_far
                bar.update(shown, completed=done)
        if options["json"]:
            as_json(self, report.as_json())
        else:
            self._tell(report)

    def _tell(self, report: Report) -> None:
        self.stdout.write(f"stored   {report.stored}")
        for reason, n in sorted(report.flagged.items()):
            self.stdout.write(f"flagged  {n:>5}  {reason}")
        for reason, n in sorted(report.refused.items()):
            self.stdout.write(f"refused  {n:>5}  {reason}")
        for row in report.details[:20]:
            word = row.get("refused") or row.get("flagged")
            self.stdout.write(f"  line {row['line']}: {word} ({', '.join(row['why']) or 'as it says'})")
        if len(report.details) > 20:
            self.stdout.write(f"  and {len(report.details) - 20} more; --json lists all.")
        if report.note:
            self.stdout.write(f"Not embedded yet: {report.note}")
