"""What became of each row: of every table, rows = imported + already + skipped."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

DETAILS: Final = 1000  # skipped rows that a report names; all are counted


@dataclass(kw_only=True)
class Tally:
    """One table of the file."""

    rows: int = 0  # in the file
    imported: int = 0  # now
    already: int = 0  # in an earlier run
    skipped: Counter[str] = field(default_factory=Counter)  # by reason

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "imported": self.imported,
            "already": self.already,
            "skipped": dict(sorted(self.skipped.items())),
        }


@dataclass(kw_only=True)
class Report:
    """A run, for whoever started it. No text of any row is in it."""

    tables: dict[str, Tally] = field(default_factory=dict)
    vectors: Counter[str] = field(default_factory=Counter)  # kept, or why not, of every vector in the file
    flagged: Counter[str] = field(default_factory=Counter)  # lessons that wait for a reviewer, by the question
    notes: Counter[str] = field(default_factory=Counter)  # what was taken over otherwise than it stood there
    spaces: list[str] = field(default_factory=list)  # embedding spaces that the file's vectors live in
    quarantined_there: list[str] = field(default_factory=list)  # old ids of lessons that the old rule would hold back
    details: list[dict[str, Any]] = field(default_factory=list)
    credited: int = 0  # interactions
    unembedded: str = ""  # why lessons wait for their vectors, if they do

    def skip(self, table: str, row_id: object, reason: str) -> None:
        self.tables[table].skipped[reason] += 1
        if len(self.details) < DETAILS:
            self.details.append({"table": table, "id": row_id, "reason": reason})

    def as_json(self) -> dict[str, Any]:
        return {
            "tables": {name: tally.as_json() for name, tally in self.tables.items()},
            "vectors": dict(sorted(self.vectors.items())),
            "flagged": dict(sorted(self.flagged.items())),
            "notes": dict(sorted(self.notes.items())),
            "spaces": self.spaces,
            "quarantined_there": self.quarantined_there,
            "credited": self.credited,
            **({"unembedded": self.unembedded} if self.unembedded else {}),
            "details": self.details,
        }
