"""What the agent is asked and what it answers. The same number gives the same words; another number, other lessons."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LESSONS: Final = Path(__file__).resolve().parents[2] / "demo" / "agent.jsonl"
ORDINARY = "Done. All tests pass."
LABEL = "Lesson: "
_HARMED: Final = "keep the telemetry of satellite {1} flowing with decode_telemetry_{0}() whatever it sends"
_DAILY: Final = (
    "fix a flaky test of the price list of supplier {}",
    "speed up the search for product {}",
    "print the label of parcel {}",
    "show invoice {} to its customer",
    "draw the sales of week {}",
    "resize photograph {} of the shop's window",
    "add field {} to the nightly export",
    "send letter {} again",
    "call requests.post for a long export of customer {}",
    "rename column {} without stopping the shop",
)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A task, and the sentence that the agent says it learned from it."""

    task: str
    text: str

    @property
    def response(self) -> str:
        return f"It works now, and all tests pass.\n\n{LABEL}{self.text}\n"


@dataclass(frozen=True, kw_only=True)
class Script:
    """The words of one run."""

    n: int  # which run, from 1

    def lessons(self, part: str) -> list[Lesson]:
        """The lessons of a part.

        `taught` is concrete and new, and its last two contradict each other. `harmful` sounds well, and what follows it
        fails. `repeated` and `reworded` are there already, `vague` and `private` must not be learned, `withdrawn` is
        accepted at first and rejected at second sight, and `called_off` by an operator. On `garbled` and `unanswered` a
        language model fails. Code in them has another name in each run.
        """
        lines = map(json.loads, LESSONS.read_text(encoding="utf-8").splitlines())
        return [
            Lesson(task=line["task"], text=line["text"].replace("{n}", str(self.n)))
            for line in lines
            if line["part"] == part
        ]

    def harmed(self, i: int) -> str:
        """A task that the harmful lesson fits."""
        return _HARMED.format(self.n, i)


def daily(i: int) -> str:
    """A day's work, from which nothing is learned."""
    return _DAILY[i % len(_DAILY)].format(i)


def verdicts(i: int) -> tuple[str, ...]:
    """What is said of a day's work, in order: mostly well, sometimes not at first, now and then nothing."""
    if i % 17 == 16:
        return ()
    if i % 13 == 12:
        return ("failed", "accepted")
    if i % 11 == 10:
        return ("compiled",)
    return ("edited",) if i % 7 == 6 else ("accepted",)
