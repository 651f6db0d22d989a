"""Is the store sound?"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import SonderError
from memory.management.output import as_json, console
from memory.services.doctor import Finding, examine
from memory.services.repair import REPAIRS


class Command(BaseCommand):
    help = "Checks the store: migrations, schema, model, indexes, search, vectors, credit, sums, tombstones, jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="compute again what can be, and look again")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        if options["repair"]:
            self._repair()
        findings = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                mark = "ok     " if finding.ok else "TROUBLE"
                self.stdout.write(f"{mark} {finding.check}: {finding.detail}. {finding.remedy}".rstrip())
        bad = [finding.check for finding in findings if not finding.ok]
        if options["json"]:
            as_json(self, {"clean": not bad, "checks": [vars(finding) for finding in findings]})
        if bad:
            raise CommandError(f"Not clean: {', '.join(bad)}.")

    def _repair(self) -> None:
        """In the order of the checks, each of which may rest on those before it: standings on sums on credit."""
        for finding in examine():
            if not finding.ok and finding.check in REPAIRS:
                self._put_right(finding)

    def _put_right(self, finding: Finding) -> None:
        with console.status(f"{finding.check}: {finding.detail}"):
            try:
                REPAIRS[finding.check]()
            except SonderError as refusal:
                raise CommandError(f"{finding.check}: {refusal.detail}") from None
