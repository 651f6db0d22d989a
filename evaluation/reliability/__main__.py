"""`python -m evaluation.reliability`: plays the suite and writes the report; fails if a bar is not met."""

import os
import sys

import django
from rich.console import Console

from evaluation.catalogue import COMMITTED, save
from evaluation.reliability.run import evaluate
from evaluation.report import number


def main() -> int:
    """0 if every bar is met."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
    django.setup()
    console = Console(stderr=True)
    report = evaluate({}, lambda done, total, what: console.print(f"{done}/{total} {what}"))
    page, _ = save(report, COMMITTED)
    for figure in report.figures:
        console.print(f"{'met    ' if figure.met else 'NOT met'} {figure.label}: {number(figure.value)} ({figure.bar})")
    console.print(f"{report.answer}\nThe whole report: {page}")
    return 0 if all(figure.met for figure in report.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
