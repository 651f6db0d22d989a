"""Is the store sound?"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management.output import as_json
from memory.services.doctor import examine


class Command(BaseCommand):
    help = "Checks the store: migrations, model, indexes, vectors, waiting outcomes, sums, tombstones, jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
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
