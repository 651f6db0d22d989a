"""Playing the script against a running server, and looking at what its worker has made of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from memory.management.agent.client import Client, until
from memory.management.agent.script import ORDINARY, Lesson, Script, daily, verdicts

#: Every reason of a distillation that needs no failing model, and what else a store shows that keeps itself in order.
REASONS: Final = (
    "stored", "not_concrete", "exact_duplicate", "semantic_duplicate", "rejected_value", "private", "contradicted",
    "no_candidate",
)  # fmt: skip
OPEN: Final = ("pending", "claimed", "retryable")
HARMED, SAMPLED = 40, 90  # most interactions for a quarantine, and for a sample on probation
#: Interactions that the parts of the story after each part may need, with bad luck in every toss.
NEEDED_AFTER: Final = (20 + HARMED + 1 + SAMPLED, HARMED + 1 + SAMPLED, SAMPLED, 0)
LEAST: Final = 20 + NEEDED_AFTER[0]


@dataclass(kw_only=True)
class Told:
    """What came of a run, as its summary tells it."""

    interactions: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # by signal
    distillations: Counter[str] = field(default_factory=Counter)  # by reason; by state while one is open
    events: list[str] = field(default_factory=list)  # what happened to the harmful lesson, oldest first
    contradictions: int = 0  # open ones in the store
    prune_clusters: int = 0  # of the current plan
    missing: list[str] = field(default_factory=list)  # what should have come of it, and has not


class Player:
    """One run. `patience` is how long to wait for each thing that the background has to do, in seconds."""

    def __init__(self, client: Client, script: Script, *, interactions: int, patience: float) -> None:
        self._client, self._script = client, script
        self._total, self._patience = interactions, patience
        self._played: list[str] = []
        self._harmful = ""  # id of the harmful lesson, once it is stored
        self._failed: list[str] = []  # interactions that followed it
        self._days = 0
        self.told = Told()

    def play(self) -> Iterator[int]:
        """Plays everything; yields how many interactions are done, after each."""
        parts = (self._teach, self._refused, self._harm, self._sample)
        for at, (part, needed_after) in enumerate(zip(parts, NEEDED_AFTER, strict=True), start=1):
            for _ in part():
                yield len(self._played)
            for _ in self._ordinary(min(self._total * at // len(parts), self._total - needed_after)):
                yield len(self._played)
        self.told.interactions = len(self._played)

    def _work(self, task: str, response: str, *signals: str, k: int = 3) -> str:
        """One interaction from start to end."""
        interaction = self._begin(task, k)["id"]
        self._client.respond(interaction, response)
        self._say(interaction, *signals)
        return str(interaction)

    def _begin(self, task: str, k: int) -> dict[str, Any]:
        started = self._client.start(task, k)
        self._played.append(started["id"])
        return started

    def _say(self, interaction: str, *signals: str) -> None:
        for signal in signals:
            self._client.report(interaction, signal)
            self.told.outcomes[signal] += 1

    def _ordinary(self, until_played: int) -> Iterator[None]:
        """Days' work from which nothing is learned, as much as there is room for."""
        while len(self._played) < until_played:
            self._work(daily(self._days), ORDINARY, *verdicts(self._days))
            self._days += 1
            yield

    def _learn(self, lessons: list[Lesson]) -> Iterator[None]:
        for lesson in lessons:
            self._work(lesson.task, lesson.response, "accepted")
            yield

    def _teach(self) -> Iterator[None]:
        """New lessons, the harmful one among them; what follows rests on them, so that they must be stored."""
        yield from self._learn([*self._script.lessons("harmful"), *self._script.lessons("taught")])
        self._settle()

    def _refused(self) -> Iterator[None]:
        """Answers that teach nothing, or what must not be learned."""
        for part in ("repeated", "reworded", "vague", "private"):
            yield from self._learn(self._script.lessons(part))
        for lesson in self._script.lessons("withdrawn"):
            interaction = self._work(lesson.task, lesson.response, "accepted", "rejected")
            yield
            self._settle()
            if self._ended(interaction) == "contradicted":
                return  # the worker may have been faster than the second thought

    def _harm(self) -> Iterator[None]:
        """Work that fails wherever the harmful lesson is handed out, until that is found out; then the lesson again."""
        self._harmful = self._id_of_harmful()
        for i in range(HARMED):
            if self._try(i, "failed"):
                self._failed.append(self._played[-1])
            yield
            if i >= 4 and until(lambda: self._state() == "quarantined", min(2.0, self._patience)):
                break
        yield from self._learn(self._script.lessons("harmful"))
        self._settle()

    def _sample(self) -> Iterator[None]:
        """Work on which a sample of the quarantined lesson does well, until it is back in service.

        Where no sample comes, whoever judged has been wrong each time, and says so now.
        """
        for i in range(HARMED, HARMED + SAMPLED):
            if self._state() != "quarantined":
                return
            sampled = self._try(i, "tests_passed")
            yield
            if sampled and until(lambda: self._state() == "active", self._patience):
                return
        for interaction in self._failed:
            self._say(interaction, "accepted")

    def _try(self, i: int, signal: str) -> bool:
        """A task that the harmful lesson fits; `signal` is what is said if it is handed out. Whether it was.

        Earlier runs' harmful lessons fit as well, and have shown by now that they do well.
        """
        started = self._begin(self._script.harmed(i), k=min(self._script.n, 5))
        followed = any(lesson["id"] == self._harmful for lesson in started["lessons"])
        self._client.respond(started["id"], ORDINARY)
        self._say(started["id"], signal if followed else "accepted")
        return followed

    def _id_of_harmful(self) -> str:
        """Of the stored lesson, which was learned in the first interaction; '' if it was not stored."""
        row = self._rows().get(self._played[0])
        return str(row["lesson"] or "") if row else ""

    def _state(self) -> str:
        return str(self._client.get(f"lessons/{self._harmful}/")["state"]) if self._harmful else ""

    def _rows(self) -> dict[str, dict[str, Any]]:
        """The run's distillations by interaction."""
        mine = set(self._played)
        return {row["id"]: row for row in self._client.pages("distillations/") if row["id"] in mine}

    def _ended(self, interaction: str) -> str:
        row = self._rows().get(interaction)
        return str(row["result_reason"]) if row else ""

    def _settle(self) -> bool:
        """Waits until no distillation of the run is open."""
        return until(lambda: not any(row["state"] in OPEN for row in self._rows().values()), self._patience)

    def look(self) -> Told:
        """Waits for what has to come of it, and tells what is missing."""
        until(lambda: not self._missing(), self._patience, pause=1.0)
        self.told.missing = self._missing()
        return self.told

    def _missing(self) -> list[str]:
        told, client = self.told, self._client
        told.distillations = Counter(row["result_reason"] or row["state"] for row in self._rows().values())
        history = client.pages(f"lessons/{self._harmful}/history/") if self._harmful else ()
        told.events = [event["kind"] for event in history][::-1]
        told.contradictions = sum(row["verdict"] is None for row in client.pages("contradictions/"))
        told.prune_clusters = len(client.get("prune/plan/")["clusters"])
        missing = [reason for reason in REASONS if not told.distillations[reason]]
        missing += [kind for kind in ("quarantined", "rehabilitated") if kind not in told.events]
        missing += ["contradiction"] * (not told.contradictions) + ["prune plan"] * (not told.prune_clusters)
        return missing
