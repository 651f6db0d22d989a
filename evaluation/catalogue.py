"""The evaluations there are, and where their reports lie."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from evaluation.report import Progress, Report, from_json, markdown

#: Reports that are part of the product, made by the commands they name.
COMMITTED: Final = Path(__file__).resolve().parent / "reports"
#: Name and what it answers. Each is a package of that name in `evaluation` with a module `run`.
EVALUATIONS: Final[Mapping[str, str]] = {
    "trust": "how well each trust policy finds harmful lessons in a simulated world where the harmful ones are known",
    "loop": "whether an agent does better with the whole loop than with retrieval alone, or with neither",
    "retrieval": "whether the lessons that fit are found, and nothing is for questions that none fits",
    "reliability": "whether killed processes, lost stores and many clients at once lose a report or count one twice",
    "replay": "what a policy with other constants would have decided over this store's own log, and when",
}


class Evaluation(Protocol):
    """What the module `evaluation.<name>.run` offers."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options of its own, each with its default and its unit in the help."""

    def evaluate(self, options: Mapping[str, Any], tell: Progress) -> Report:
        """Runs it. Raises `memory.errors.SonderError` with a remedy where the input cannot be used."""


def load(name: str) -> Evaluation:
    """The evaluation of this name; it is imported only now, since some need much that others do not."""
    module: Evaluation = import_module(f"evaluation.{name}.run")
    return module


def save(report: Report, folder: Path) -> tuple[Path, Path]:
    """Writes the report as a page and as data; the paths of both."""
    folder.mkdir(parents=True, exist_ok=True)
    page, data = folder / f"{report.name}.md", folder / f"{report.name}.json"
    page.write_text(markdown(report), encoding="utf-8")
    data.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
    return page, data


def read(name: str, folder: Path) -> Report | None:
    """The report of this name in a folder; None if there is none or it is no report of this version."""
    try:
        return from_json(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
