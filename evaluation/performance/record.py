"""Everything that was measured, kept as data beside the page, so that one run adds to what others found."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.performance.bars import ROWS
from evaluation.performance.finding import Finding, from_json
from evaluation.performance.machine import Machine

DATA: Final = "performance.json"


@dataclass(frozen=True, kw_only=True)
class Group:
    """What one measurement found at one size, when and on what."""

    name: str  # of the measurement
    lessons: int
    measured_at: str  # ISO 8601, UTC, to the second
    took_s: float  # with the making of its store, where there was none
    machine: Machine
    findings: tuple[Finding, ...]


def read(folder: Path) -> list[Group]:
    """The groups of a folder's record; none where there is no record.

    Raises ValueError, KeyError or TypeError if it is of another version.
    """
    path = folder / DATA
    return [_group(told) for told in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def write(groups: Sequence[Group], folder: Path) -> None:
    """Replaces the folder's record."""
    folder.mkdir(parents=True, exist_ok=True)
    told = json.dumps([asdict(group) for group in groups], indent=1)
    (folder / DATA).write_text(told + "\n", encoding="utf-8")


def merged(groups: Iterable[Group], new: Group) -> list[Group]:
    """The groups with a new one, in the place of the same measurement's at the same size; in the report's order."""
    by_name = {(group.name, group.lessons): group for group in groups}
    by_name[new.name, new.lessons] = new
    return sorted(by_name.values(), key=_place)


def _place(group: Group) -> tuple[int, int]:
    about = group.findings[0].about if group.findings else ""
    return group.lessons, next((n for n, row in enumerate(ROWS) if row.name == about), len(ROWS))


def _group(told: dict[str, Any]) -> Group:
    machine, findings = Machine(**told["machine"]), tuple(from_json(each) for each in told["findings"])
    return Group(**{**told, "machine": machine, "findings": findings})
