"""Measures the product: retrieval, trust, the loop, and other constants over this store's own log."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evaluation.catalogue import COMMITTED, EVALUATIONS, load, save
from evaluation.report import Report, interval, number
from memory.errors import SonderError
from memory.management.output import as_json, progress


class Command(BaseCommand):
    help = (
        "Measures the product and says how well it does, with intervals. Keeps the report where the page Measured "
        "under Health finds it; --committed writes it among the reports that are part of the product instead."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_subparsers(dest="evaluation", required=True, metavar="{" + ",".join(EVALUATIONS) + "}")
        for name, answers in EVALUATIONS.items():
            one = which.add_parser(name, help=answers, description=f"Measures {answers}.")
            one.add_argument("--json", action="store_true", help="the whole report as JSON")
            one.add_argument("--committed", action="store_true", help="write it into evaluation/reports")
            load(name).add_arguments(one)

    def handle(self, **options: Any) -> None:
        name = options["evaluation"]
        try:
            with progress() as bar:
                shown = bar.add_task(name, total=None)

                def tell(done: int, total: int, what: str) -> None:
                    bar.update(shown, completed=done, total=total, description=what)

                report = load(name).evaluate(options, tell)
        except SonderError as refusal:
            raise CommandError(refusal.detail) from None
        page, _ = save(report, COMMITTED if options["committed"] else Path(settings.SONDER_VAR) / "reports")
        if options["json"]:
            as_json(self, report.to_json())
        else:
            self._say(report)
            self.stdout.write(f"The whole report: {page}")

    def _say(self, report: Report) -> None:
        self.stdout.write(f"{report.title}\n{report.answer}\n")
        for figure in report.figures:
            bar = f"  ({figure.bar}: {'met' if figure.met else 'NOT met'})" if figure.met is not None else ""
            told = f"{number(figure.value, figure.unit)} {interval(figure)}".strip()
            self.stdout.write(f"  {figure.label}: {told}{bar}")
