"""`evaluate reliability`: what the product loses or does twice when its parts are killed under load."""

import platform
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import psutil

from evaluation.reliability.playing import Played, play
from evaluation.reliability.suite import SUITE, settings
from evaluation.report import Cell, Figure, Progress, Report, Table

HOW: Final = """
Each row is one or more tests of the product's suite, played at full length on real processes: the embedded
PostgreSQL, a Redis, a Celery worker, and for outages and many clients the whole of `manage.py up` with agents who
work over HTTP. Kills are SIGKILL, at moments drawn at random while work is in progress. The worker dies with its
children after it has credited a part of what was reported, or while a language model answers it. Of PostgreSQL, the
postmaster and one of its backends die in turn; agents are answered 503 and send the same request again with the same
Idempotency-Key. Redis also hangs, and at the end stays away. Afterwards every id that an agent was given is looked up
in the store, and the store is searched for rows that no agent was told of; which outcome must count for an
interaction is computed from the outcomes alone, and the running sums are compared with a rebuild from the stored
rows, to the last digit. The many clients repeat a tenth of their requests later under the same key; the same words
are then said one after the other in another account, and the credit of each interaction and exposure is compared.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "A killed process is not a lost machine: the kernel lived, and kept what had been written. A power cut is left to "
    "PostgreSQL's own write-ahead log.",
    "Kills were random but few for each instant: a fault in a window of microseconds can be missed.",
    "One machine: a network between the processes that drops or delays packets was not tried.",
)


def add_arguments(parser: ArgumentParser) -> None:
    """None: the variables KILLS, STORES_KILLED and OUTCOMES say how often; without them it is played in full."""


def evaluate(options: Mapping[str, Any], tell: Progress) -> Report:
    """Plays the whole suite, which takes most of an hour. Raises Invalid where the tests are not installed."""
    started, played = time.monotonic(), list[Played]()
    for done, run in enumerate(SUITE):
        tell(done, len(SUITE), run.rows[-1].what)
        played += play(run)
    tell(len(SUITE), len(SUITE), "done")
    return Report(
        name="reliability",
        title="Reliability: is anything lost or counted twice when processes die?",
        question="What is lost, counted twice or credited wrongly when workers and stores are killed under load?",
        answer=_answer(played),
        command="make reliability",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - started, 1),
        parameters=_parameters(),
        figures=tuple(map(_figure, played)),
        how=HOW,
        limits=LIMITS,
        tables=(_table(played),),
    )


def _answer(played: list[Played]) -> str:
    missed = [each.row.what for each in played if not each.met]
    if missed:
        return f"{len(missed)} of {len(played)} rows do not meet their bar: {'; '.join(missed)}."
    kills = sum(each.figures.get("kills", 0) for each in played)
    said = sum(each.figures.get("outcomes", 0) for each in played)
    return (
        f"Nothing: after {kills:,.0f} kills and {said:,.0f} reported outcomes, every one was there once, and all sums "
        "equalled a rebuild."
    )


def _parameters() -> dict[str, Cell]:
    asked = {name: int(value) for run in SUITE for name, value in settings(run).items()}
    return {**asked, "cores": psutil.cpu_count(), "system": platform.system(), "Python": platform.python_version()}


def _figure(played: Played) -> Figure:
    row = played.row
    return Figure(
        key=f"reliability.{row.key.replace(', ', '.').replace(' ', '_')}",
        label=f"{row.what}: faults in {played.counted:,.0f} {row.unit}",
        value=played.faults,
        bar=f"0 in at least {row.least:,}",
        met=played.met,
    )


def _table(played: list[Played]) -> Table:
    names = ("lost", "twice", "wrong", "outcomes", "retries", "repeated", "interrupted", "seconds")
    return Table(
        title="What was counted",
        columns=("what", "how many", "lost", "counted twice", "otherwise wrong", "outcomes", "requests sent again",
                 "repeated requests", "interrupted", "seconds until all was credited", "tests passed", "failed"),
        rows=tuple(
            (
                each.row.what, f"{each.counted:,.0f} {each.row.unit}",
                *(_cell(each.figures.get(name)) for name in names), each.passed, each.failed,
            )
            for each in played
        ),
        note="Lost: what was acknowledged and is not there, or is never credited. Counted twice: rows that nobody was "
        "told of, and sums that differ from their rebuild. Otherwise wrong: another outcome decides than the rules "
        "say, gaps in the order of credit, or what belongs to nothing. Interrupted: what a kill cut off. Requests sent "
        "again: answered 503 first. A column that a row does not count stays empty.",
    )  # fmt: skip


def _cell(value: float | None) -> Cell:
    return "" if value is None else round(value, 1) if value % 1 else int(value)
