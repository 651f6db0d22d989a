"""Sums and standings from the stored rows."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memory.management.output import as_json, progress
from memory.models import LessonSourceSum
from memory.services.standing import rebuild_standings, rebuild_sums


class Command(BaseCommand):
    help = "Computes the running sums and the standings again from stored outcomes. Moves no lesson's state."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        found = rebuild_sums()
        total = LessonSourceSum.objects.values("lesson_id").distinct().count()
        done = 0
        with progress() as bar:
            shown = bar.add_task("standings", total=total)
            for done in rebuild_standings():
                bar.update(shown, completed=done)
        told = {"standings": done, "sums_corrected": len(found), "differences": [vars(d) for d in found[:100]]}
        if options["json"]:
            as_json(self, told)
            return
        self.stdout.write(f"{done} standings written, {len(found)} sums corrected.")
        for difference in found[:20]:
            self.stdout.write(f"  {difference.table} {difference.key}: {difference.running} -> {difference.rebuilt}")
