"""What the processes of a storm count, and what they found wrong; of any length, in the same little memory."""

import json
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

COUNTED: Final = ("answers", "checked", "overlapped", "barred", "samples", "again", "changes", "refused", "faults")
TOLD: Final = 10  # faults of one process that are told with what they were


class Tallies:
    """One row of numbers for each process, shared by this process and all that it forks."""

    def __init__(self, processes: int, names: Sequence[str], folder: Path) -> None:
        self.columns = {name: i for i, name in enumerate(names)}
        memory = mmap.mmap(-1, 8 * processes * len(names))
        self.rows = np.frombuffer(memory, dtype=np.int64).reshape(processes, len(names))
        self.folder = folder  # of what was wrong

    def total(self, name: str) -> int:
        return int(self.rows[:, self.columns[name]].sum())

    def told(self) -> list[dict[str, str]]:
        """What was wrong, of every process."""
        lines = [line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]


class Tally:
    """One process's."""

    def __init__(self, tallies: Tallies, number: int, name: str) -> None:
        self._row, self._columns = tallies.rows[number], tallies.columns
        self._file = tallies.folder / f"{number}.jsonl"
        self._name = name

    def add(self, counted: str, n: int = 1) -> None:
        self._row[self._columns[counted]] += n

    def get(self, counted: str) -> int:
        return int(self._row[self._columns[counted]])

    def fault(self, what: str, where: str) -> None:
        """Counts it, and tells it if it is one of the first."""
        self.add("faults")
        if self.get("faults") <= TOLD:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"process": self._name, "what": what, "where": where}) + "\n")
