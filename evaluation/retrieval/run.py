"""`manage.py evaluate retrieval`: whether the lessons that fit are found, and nothing where none fits."""

import hashlib
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluation.report import Cell, Progress, Report

if TYPE_CHECKING:
    from evaluation.retrieval.sets import LabelledSet

FILES: Final = ("lessons", "queries", "off_domain", "intents")
DIVISIONS: Final = 4
HOW: Final = (
    "Every question goes through the product's own retrieval, on PostgreSQL and with the configured model, as a "
    "look-up: nothing counts as a serving. Before the gate, lessons are in the order of their fused scores. Behind it, "
    "answers of five lessons (of twenty for recall@20) are what an agent is handed, redundancy taken out. The gate's "
    "thresholds are fitted as calibrate fits them and judged by five-fold cross-validation over tasks and off-domain "
    "questions: what answers a question was fitted to the four fifths that it is not among. The division into fifths "
    "is drawn several times; a task counts by the share of them in which its lesson is found, and of noise the worst "
    "division counts. Intervals at 95%: a bootstrap over the tasks, Wilson's for shares of off-domain questions. "
    "Baselines rank all lessons: exact cosine; BM25 (k1 1.2, b 0.75) over English stems; reciprocal ranks of both."
)
LIMITS: Final = (
    "One lesson is known to fit each task. Others may fit as well, and count here as not found.",
    "The lesson was learned from the task, so both speak of the same thing; a task that comes later may say it in "
    "other words.",
    "Off-domain questions are of everyday life. Questions about work that no lesson speaks of are harder to refuse.",
    "Vectors are compared exactly; what the vector index of a large store loses is measured in the report on "
    "performance.",
    "The thresholds in force were chosen with knowledge of such data, so their figures are not independent of it; the "
    "cross-validated ones are.",
)
OF_STORE: Final = (
    "A lesson that was handed out for a task that was won had passed the gate of its day; such tasks cannot show what "
    "a more open gate would find."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--lessons", type=Path, help='JSON lines {"id", "text"}; this store\'s own unless given')
    parser.add_argument("--queries", type=Path, help='JSON lines {"query", "lesson_id"}: tasks and what fits them')
    parser.add_argument("--off-domain", type=Path, help='JSON lines {"query"}: questions that no lesson fits')
    parser.add_argument("--intents", type=Path, help='JSON lines {"query"}: each should get a lesson')
    parser.add_argument("--called", default="", help="what the set is called in the report")
    parser.add_argument(
        "--divisions", type=int, default=DIVISIONS, help=f"draws of the fifths, {DIVISIONS} if not given"
    )


def evaluate(options: Mapping[str, Any], tell: Progress) -> Report:
    """Asks every question of the set, or of this store's own evidence."""
    from evaluation.retrieval.answers import answer
    from evaluation.retrieval.findings import Findings
    from memory.errors import Invalid

    began, divisions = time.monotonic(), max(1, options["divisions"])
    with _opened(options, tell) as given:
        try:
            found = answer(given.evidence, given.space, divisions, lambda done, total: tell(done, total, "questions"))
        except ValueError as error:
            raise Invalid(f"Too little to measure with. {error}") from None
        findings = Findings(given, found)
        return Report(
            name="retrieval",
            title="Retrieval: are the lessons that fit found, and nothing where none fits?",
            question=f"On {given.called}: is a task handed the lesson that fits it, and an off-domain question none?",
            answer=findings.answer(),
            command=_command(options),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            took_s=round(time.monotonic() - began, 1),
            parameters=_parameters(options, given, divisions),
            figures=findings.figures(),
            how=HOW,
            limits=LIMITS if given.is_file else (*LIMITS, OF_STORE),
            tables=findings.tables(),
            plots=findings.plots(),
        )


@contextmanager
def _opened(options: Mapping[str, Any], tell: Progress) -> Iterator["LabelledSet"]:
    """What is asked, in a store of its own where files bring the lessons. Raises Invalid if one of them is missing."""
    from evaluation.retrieval.sets import of_files, of_store
    from memory.errors import Invalid

    if not any(options[name] for name in FILES):
        yield of_store(options["called"])
        return
    if not (options["lessons"] and options["queries"] and options["off_domain"]):
        raise Invalid("A labelled set has --lessons, --queries and --off-domain; --intents may come with it.")
    with of_files(
        options["lessons"],
        options["queries"],
        options["off_domain"],
        options["intents"],
        called=options["called"],
        tell=lambda done: tell(done, done, "lessons"),
    ) as given:
        yield given


def _command(options: Mapping[str, Any]) -> str:
    """The command with the files' names, without where they lie on this machine."""
    files = [f"--{name.replace('_', '-')} {options[name].name}" for name in FILES if options[name]]
    return " ".join(["manage.py evaluate retrieval", *files])


def _parameters(options: Mapping[str, Any], given: "LabelledSet", divisions: int) -> dict[str, Cell]:
    from evaluation.retrieval.scores import RESAMPLES
    from memory import conf
    from memory.rules.calibration import FALSE_RATE, FOLDS, LOST

    digests: dict[str, Cell] = {
        f"{name} sha256": hashlib.sha256(options[name].read_bytes()).hexdigest()[:12] for name in FILES if options[name]
    }
    return {
        "lessons": given.lessons,
        "tasks": len(given.evidence.tasks),
        "off-domain questions": len(given.evidence.off_domain),
        "model": str(given.space),
        "folds": FOLDS,
        "divisions": divisions,
        "resamples": RESAMPLES,
        "false rate": FALSE_RATE,
        "lost": LOST,
        "RRF k": conf.current().rrf_k,
        "MMR lambda": conf.current().lambda_mmr,
        **digests,
    }
