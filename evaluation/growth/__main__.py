"""`python -m evaluation.growth [PART ...]`, all parts without a name; `bounds.py` has the variables."""

import os
import signal
import sys
from functools import partial

import django
from rich.console import Console

from evaluation.growth.arithmetic import PAGE, page_with_tables
from evaluation.growth.parts import PARTS, REPORTS, keep, read
from evaluation.report import number


def main(names: list[str]) -> int:
    """0 if every bar is met, 2 for a part that there is not."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
    django.setup()  # settings for the processes that it starts; it asks no database itself
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, and its folder removed
    console = Console(stderr=True, highlight=False)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        console.print(f"There is no part {unknown[0]}. Choose from: {', '.join(PARTS)}.")
        return 2
    met = True
    for name in names or PARTS:
        report = PARTS[name](partial(_tell, console, name))
        keep(report, REPORTS)
        met = met and all(figure.met is not False for figure in report.figures)
        console.print(report.answer)
        for each in report.figures:
            if each.met is False:
                console.print(f"NOT met {each.label}: {number(each.value, each.unit)} ({each.bar})")
    made = read(REPORTS)
    if made.keys() == PARTS.keys():
        PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    console.print(f"The whole report: {REPORTS / 'growth.md'}")
    return 0 if met else 1


def _tell(console: Console, name: str, done: int, total: int, what: str) -> None:
    console.print(f"{name} {done}/{total} {what}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
