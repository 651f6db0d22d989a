"""Are the stored lessons fit to be there?"""

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand
from rich.progress import Progress, TaskID

from memory.management.output import as_json, progress
from memory.services.audit import Finding, ask, audit

SHOWN = 20  # findings told in full; --json tells all


class Command(BaseCommand):
    help = (
        "Looks through stored lessons for what is vague, private, said twice, rejected before, or stale. Reports it "
        "without its text and opens a question for a reviewer about each. Changes no lesson."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--report-only", action="store_true", help="open no questions")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        findings = self._look()
        asked = 0 if options["report_only"] else ask(findings)
        counts = Counter(finding.kind for finding in findings)
        if options["json"]:
            as_json(self, {"counts": counts, "asked": asked, "findings": [f.to_json() for f in findings]})
            return
        for kind, n in sorted(counts.items()):
            self.stdout.write(f"{n:>6}  {kind}")
        for finding in findings[:SHOWN]:
            self.stdout.write(f"  {finding.kind}  {finding.lesson}  {', '.join(finding.why)}")
        if len(findings) > SHOWN:
            self.stdout.write(f"  and {len(findings) - SHOWN} more; --json lists all.")
        self.stdout.write(f"{len(findings)} findings, {asked} new questions.")

    def _look(self) -> list[Finding]:
        findings: list[Finding] = []
        bars: dict[str, TaskID] = {}
        with progress() as bar:
            for step in audit():
                self._show(bar, bars, step.part, step.done, step.total)
                findings += step.findings
        return findings

    def _show(self, bar: Progress, bars: dict[str, TaskID], part: str, done: int, total: int) -> None:
        if part not in bars:
            bars[part] = bar.add_task(part)
        bar.update(bars[part], completed=done, total=total)
