"""Playing the script against a running server, and looking at what its worker has made of it."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from memory.management.agent.client import Client, until
from memory.management.agent.model import Model
from memory.management.agent.script import ORDINARY, Lesson, Script, daily, verdicts
from memory.management.agent.told import MODEL_REASONS, REASONS, Told

OPEN: Final = ("pending", "claimed", "retryable")
TAUGHT, REFUSED = 15, 29  # interactions of the first two parts
HARMED, SAMPLED = 340, 90  # most interactions for a quarantine, which a coin delays, and for a sample on probation
#: Interactions that the parts of the story after each part may need, with bad luck in every toss.
NEEDED_AFTER: Final = (REFUSED + HARMED + 1 + SAMPLED, HARMED + 1 + SAMPLED, SAMPLED, 0)
LEAST: Final = TAUGHT + NEEDED_AFTER[0]


class Player:
    """One run. `patience` is how long to wait for each thing that the background has to do, in seconds."""

    def __init__(
        self, client: Client, script: Script, *, interactions: int, patience: float, model: Model | None = None
    ) -> None:
        self._client, self._script, self._model = client, script, model
        self._total, self._patience = interactions, patience
        self._worker_comes = True  # a worker that did not come once is not waited for again
        self._played: list[str] = []
        self._harmful = ""  # id of the harmful lesson, once it is stored
        self._failed: list[str] = []  # interactions that followed it
        self._days = 0
        self.told = Told()

    def play(self) -> Iterator[int]:
        """Plays everything; yields how many interactions are done, after each."""
        started = time.monotonic()
        parts = (self._teach, self._refused, self._harm, self._sample)
        for at, (part, needed_after) in enumerate(zip(parts, NEEDED_AFTER, strict=True), start=1):
            for _ in part():
                yield len(self._played)
            for _ in self._ordinary(min(self._total * at // len(parts), self._total - needed_after)):
                yield len(self._played)
        self.told.interactions, self.told.seconds = len(self._played), time.monotonic() - started

    def look(self) -> Told:
        """Waits for what has to come of it, and tells what is missing."""
        until(lambda: not (self._look().missing or self.told.open), self._patience)
        return self.told

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

    def _learn(self, *parts: str) -> Iterator[None]:
        for part in parts:
            for lesson in self._script.lessons(part):
                self._work(lesson.task, lesson.response, "accepted")
                yield

    def _teach(self) -> Iterator[None]:
        """New lessons, the harmful one among them; what follows rests on them, so that they must be stored."""
        yield from self._learn("harmful", "taught")
        self._wait(self._settled)

    def _refused(self) -> Iterator[None]:
        """Answers that teach nothing, or what must not be learned; and second thoughts."""
        yield from self._learn("repeated", "reworded", "vague", "private")
        yield from self._think_again("withdrawn", lambda work: self._say(work, "rejected"), "contradicted")
        yield from self._think_again("called_off", self._client.call_off, "cancelled_by_operator")
        if self._model:
            yield from self._learn("garbled", "unanswered")
            self._wait(self._settled)

    def _think_again(self, part: str, act: Callable[[str], None], reason: str) -> Iterator[None]:
        """Good work until a second thought is in time: without a model of its own the worker may be faster."""
        for lesson in self._script.lessons(part):
            work = self._work(lesson.task, lesson.response, "accepted")
            self._wait_for_model(lesson)
            act(work)
            if self._model:
                self._model.release(lesson.task)
            yield
            if any(row["id"] == work for row in self._client.pages("distillations/", result_reason=reason)):
                return

    def _harm(self) -> Iterator[None]:
        """Work that fails wherever the harmful lesson is handed out, until that is found out; then the lesson again."""
        self._harmful = self._id_of_harmful()
        for i in range(HARMED):
            if self._try(i, "failed"):
                self._failed.append(self._played[-1])
            yield
            if self._state() == "quarantined":
                break
        yield from self._learn("harmful")
        self._wait(self._settled)

    def _sample(self) -> Iterator[None]:
        """Work on which a sample of the quarantined lesson does well, until it is back in service.

        Where no sample comes, whoever judged has been wrong each time, and says so now.
        """
        for i in range(HARMED, HARMED + SAMPLED):
            self._try(i, "tests_passed")
            yield
            if self._state() == "active":
                return
        for interaction in self._failed:
            self._say(interaction, "accepted")

    def _try(self, i: int, signal: str) -> bool:
        """A task that the harmful lesson fits; `signal` is what is said if it is handed out, and is then credited.

        Returns whether it was. Earlier runs' harmful lessons fit as well, and have shown by now that they do well.
        """
        started = self._begin(self._script.harmed(i), k=min(self._script.n, 5))
        work = started["id"]
        followed = any(lesson["id"] == self._harmful for lesson in started["lessons"])
        self._client.respond(work, ORDINARY)
        self._say(work, signal if followed else "accepted")
        if followed:
            self._wait(lambda: any(self._client.pages("outcomes/", interaction=work, credited="true")))
        return followed

    def _id_of_harmful(self) -> str:
        """Of the stored lesson, which was learned in the first interaction; '' if it was not stored."""
        row = self._rows().get(self._played[0])
        return str(row["lesson"] or "") if row else ""

    def _state(self) -> str:
        return str(self._client.get(f"lessons/{self._harmful}/")["state"]) if self._harmful else ""

    def _rows(self, **filters: str) -> dict[str, dict[str, Any]]:
        """The run's distillations by interaction."""
        mine = set(self._played)
        return {row["id"]: row for row in self._client.pages("distillations/", **filters) if row["id"] in mine}

    def _settled(self) -> bool:
        """Whether no distillation of the run is open."""
        return not any(self._rows(state=state) for state in OPEN)

    def _wait(self, happened: Callable[[], bool]) -> None:
        """Waits for the worker, and counts for how long."""
        started = time.monotonic()
        self._worker_comes = until(happened, self._patience if self._worker_comes else 0.0)
        self.told.waited += time.monotonic() - started

    def _wait_for_model(self, lesson: Lesson) -> None:
        if self._model:
            started = time.monotonic()
            self._worker_comes = self._model.is_asked(lesson.task, self._patience if self._worker_comes else 0.0)
            self.told.waited += time.monotonic() - started

    def _look(self) -> Told:
        told, rows = self.told, self._rows()
        history = self._client.pages(f"lessons/{self._harmful}/history/") if self._harmful else ()
        told.events = [event["kind"] for event in history][::-1]
        learned = {row["lesson"] for row in rows.values() if row["lesson"]}
        flagged = self._client.pages("contradictions/", open="true")
        contradictions = sum(row["first"]["id"] in learned or row["second"]["id"] in learned for row in flagged)
        clusters = len(self._client.get("prune/plan/")["clusters"])
        told.look((*REASONS, *(MODEL_REASONS if self._model else ())), rows.values(), contradictions, clusters)
        return told
