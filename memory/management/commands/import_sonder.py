"""Moving in: the memory.db of a Sonder that kept its memory in SQLite."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError

from memory.errors import SonderError
from memory.management.output import as_json, progress
from memory.management.scope import existing_account
from memory.models import Account
from memory.models.vocabulary import ReviewPolicy
from memory.services.setup import open_space
from memory.services.sonder.report import Report
from memory.services.sonder.run import import_store
from memory.services.sonder.snapshot import Snapshot, open_snapshot

ACCOUNT = "sonder"
SHOWN = 20  # rows that are named one by one


class Command(BaseCommand):
    help = (
        "Imports the memory of a Sonder that kept it in SQLite, also while that is in use: the file is only read. "
        "Interrupted, it is run again; twice is once. Reports what was imported, and what was skipped and why."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--account", help=f"slug of the account that it becomes; {ACCOUNT!r}, made if need be")
        parser.add_argument("--dry-run", action="store_true", help="say what would come of it, and change nothing")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        path: Path = options["file"]
        account = self._account(options["account"], dry_run=options["dry_run"])
        try:
            with open_snapshot(path) as source:
                if not options["dry_run"]:
                    open_space()
                report = self._import(source, account, dry_run=options["dry_run"])
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from None
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        except IntegrityError as error:
            if "imported_row_legacy_id_unique" not in str(error):
                raise
            raise CommandError(
                "Another import into this account is under way. Run this again when it is done."
            ) from None
        told = {"file": path.name, "account": account.slug, "dry_run": options["dry_run"], **report.as_json()}
        if options["json"]:
            as_json(self, told)
        else:
            self._tell(told)

    def _account(self, slug: str | None, *, dry_run: bool) -> Account:
        if slug is not None:
            return existing_account(slug, f"Make it: manage.py create_api_key {slug} --source caller --create-account")
        defaults = {"name": "Sonder", "review_policy": ReviewPolicy.AUTO.value}
        found = Account.objects.filter(slug=ACCOUNT).first()
        if found is None and dry_run:
            raise CommandError("There is no account yet that a dry run could look at. Name one with --account.")
        return found or Account.objects.create(slug=ACCOUNT, **defaults)

    def _import(self, source: Snapshot, account: Account, *, dry_run: bool) -> Report:
        report = Report()
        with progress() as bar:
            shown: dict[str, Any] = {}
            for table, done, so_far in import_store(source, account, dry_run=dry_run):
                report = so_far
                if table not in shown:
                    shown[table] = bar.add_task(table, total=source.count(table) or None)
                bar.update(shown[table], completed=done)
        return report

    def _tell(self, told: dict[str, Any]) -> None:
        would = "would be " if told["dry_run"] else ""
        self.stdout.write(f"{told['file']} {would}imported into the account {told['account']}.")
        for name, tally in sorted(told["tables"].items()):
            line = f"{name:<28} {tally['rows']:>8} rows {tally['imported']:>8} imported {tally['already']:>8} before"
            reasons = ", ".join(f"{n} {reason}" for reason, n in tally["skipped"].items())
            self.stdout.write(f"{line}  {'skipped: ' + reasons if reasons else ''}".rstrip())
        for what in ("vectors", "flagged", "notes"):
            for name, n in told[what].items():
                self.stdout.write(f"{what:<28} {n:>8} {name}")
        for space in told["spaces"]:
            self.stdout.write(f"The file's vectors are kept in the space {space}.")
        if held := told["quarantined_there"]:
            self.stdout.write(
                f"{len(held)} lessons that the old store held back are served here, because nobody recorded who judged "
                f"them; a reviewer may take them out: {', '.join(held[:SHOWN])}"
            )
        for row in told["details"][:SHOWN]:
            self.stdout.write(f"  {row['table']} {row['id']}: {row['reason']}")
        if len(told["details"]) > SHOWN:
            self.stdout.write("  and more; --json lists them.")
        if "unembedded" in told:
            self.stdout.write(f"Not embedded yet: {told['unembedded']}")
