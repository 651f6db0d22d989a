"""Does the store learn?"""

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from memory.management.output import as_json
from memory.rules.words import count
from memory.services.health import HealthReport, report


class Command(BaseCommand):
    help = "Reports how the installation learns: judges, outcomes, lessons, quarantines, queues and scheduled jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        made = report()
        if options["json"]:
            as_json(self, asdict(made))
            return
        for line in told(made):
            self.stdout.write(line)


def told(made: HealthReport) -> Iterator[str]:
    """The report for a terminal."""
    yield f"{made.state.upper()}, by the last four weeks"
    yield from (f"  {reason.state}: {reason.words}" for reason in made.reasons)
    yield from _learning(made)
    yield "Lessons"
    for row in made.lessons:
        if row.n:
            trial = f", {row.on_trial} on trial" if row.on_trial else ""
            yield f"  {row.state}: {row.n}{trial}; {row.week} from this week, {row.older} older than 12 weeks"
    q = made.quarantine
    yield (
        f"  quarantines: {q.opened + q.opened_by_reviewer} opened, {q.upheld} upheld, {q.overturned} overturned, "
        f"{q.rehabilitated} rehabilitated"
    )
    yield f"  vectors: {made.vectors.missing} missing, {made.vectors.in_other_spaces} of another space"
    yield "Queues"
    yield from (f"  {row.name}: {row.waiting} waiting, {row.late} late" for row in made.queues)
    yield "Scheduled jobs"
    for job in made.jobs:
        ran = f"last good run {job.done_at:%Y-%m-%d %H:%M:%S} UTC" if job.done_at else "no good run yet"
        yield f"  {job.job}: {job.standing}, {ran}"


def _learning(made: HealthReport) -> Iterator[str]:
    """Judges, work and what came of it."""
    yield "Judged work, by who judged"
    for row in made.classes:
        if row.win_rate is not None:
            yield (
                f"  {row.source}: {row.wins} won, {row.losses} lost; {row.win_rate:.0%} won, "
                f"plausibly {row.low:.0%} to {row.high:.0%}"
            )
    work = made.work
    yield f"  {work.without_outcome} of {count(work.settled, 'interaction')} that are a day old have no outcome"
    yield "Distillations"
    yield from (f"  {row.reason or row.state}: {row.n}" for row in made.distillations)
    yield "Exposures"
    for exposure in made.exposures:
        by = "; ".join(f"{row.source}: {row.wins} won, {row.losses} lost" for row in exposure.credited)
        if exposure.n:
            yield f"  {exposure.exposure}: {exposure.n}" + (f" ({by})" if by else "")
    yield "Loss rate by how often a lesson was scored"
    for band in made.bands:
        upper = f" to {band.upper}" if band.upper else " and more"
        yield f"  {band.lower}{upper}: {band.rate:.3f}, from {band.losses} of {band.n}"
