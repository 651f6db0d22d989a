"""The parts of the measurement: each is made alone, and its report stays until it is made again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from evaluation.growth import accounts, footprint, load, sizes, soak
from evaluation.report import Progress, Report, from_json, markdown

REPORTS: Final = Path(__file__).resolve().parents[1] / "reports"
DATA, PAGE = "growth.json", "growth.md"
PARTS: Final[Mapping[str, Callable[[Progress], Report]]] = MappingProxyType(
    {
        "load": load.measure,
        "soak": soak.measure,
        "footprint": footprint.measure,
        "accounts": accounts.measure,
        "sizes": sizes.measure,
    }
)
_HEAD: Final = """\
# Growth

What the whole product bears on one machine, and what it grows by. Each part was made by itself, at the time and on the
machine that it names; `make growth ARGS="load soak"` makes parts anew and leaves the others.
[docs/growth.md](../../docs/growth.md) says what follows from it for stores that are many times as large.
"""


def read(folder: Path) -> dict[str, Report]:
    """The reports of a folder by part; none where there is no record."""
    path = folder / DATA
    told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: from_json(report) for name, report in told.items()}


def keep(report: Report, folder: Path) -> None:
    """Puts a part's report in the place of its last one, in the record and on the page."""
    folder.mkdir(parents=True, exist_ok=True)
    found = read(folder) | {report.name: report}
    reports = {name: found[name] for name in PARTS if name in found}
    told = {name: each.to_json() for name, each in reports.items()}
    (folder / DATA).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (folder / PAGE).write_text(page(reports), encoding="utf-8")


def page(reports: Mapping[str, Report]) -> str:
    """All of them, one below the other."""
    return "\n".join([_HEAD, *(_below(markdown(report)) for report in reports.values())])


def _below(text: str) -> str:
    """The headings one level deeper."""
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines()) + "\n"
