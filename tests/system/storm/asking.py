"""Agents in a storm: each answer is held against the board as it was before the question, and against the log."""

import json
import random
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from memory.models import Account
from memory.models.sql import fetch
from memory.rules.probation import interaction_fraction
from memory.search import embed_query
from memory.services import interaction
from memory.services.retrieval import look_up
from tests.system.storm import texts
from tests.system.storm.board import Board, Known, State, Words, fault, marks
from tests.system.storm.stage import Asked, Scope
from tests.system.storm.tally import Tally

STARTED: Final = 0.08  # of the questions in process begin work; the others look up, which writes nothing
K: Final = 5
RETRY_SECONDS: Final = 0.1
KEPT: Final = 32  # answers that a client by HTTP asks for again
USAGE: Final = """
    SELECT lesson_id, exposure, probability FROM lesson_usage
    WHERE interaction_id = %s AND exposure IN ('served', 'probation')
"""


@dataclass(frozen=True, kw_only=True)
class Handed:
    """One lesson of an answer."""

    id: UUID
    text: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    lessons: Sequence[Handed]
    context: str | None = None  # None: a look-up has none
    considered: Collection[str] = ()  # texts
    interaction: UUID | None = None  # None: nothing was recorded
    log: dict[UUID, tuple[str, float]] = field(default_factory=dict)  # exposure and probability, by lesson
    at_once: bool = False  # the log was read in the transaction that wrote it


class Asker:
    """Asks for lessons of some scopes, in this process."""

    def __init__(
        self, board: Board, tally: Tally, scopes: Sequence[Scope], seed: int, *, started: float = STARTED
    ) -> None:
        self._board, self._tally, self._scopes, self._started = board, tally, scopes, started
        self._rng = random.Random(seed)

    def ask(self) -> None:
        """One question and its check."""
        scope = self._rng.choice(self._scopes)
        asked, slot = self._rng.choice(scope.accounts), self._rng.choice(scope.slots)
        seen = self._board.seen()
        answer = self.answer(asked, texts.task(slot.group, slot.number))
        target = self._board.known(seen, slot.place)
        if target is not None and target.state in (State.GONE, State.ERASED, State.QUARANTINED):
            self._tally.add("barred")
        self.check(seen, scope, asked, answer)
        self._tally.add("answers")

    def answer(self, asked: Asked, task: str) -> Answer:
        """As the endpoints do: the task is embedded first, then one transaction."""
        query = embed_query(task)
        if self._rng.random() < self._started:
            return self._start(asked, task, query)
        account = Account.objects.get(pk=asked.id)
        with transaction.atomic():
            found = look_up(account, query, K)
        return Answer(
            lessons=[Handed(id=f.ranked.candidate.lesson_id, text=f.ranked.candidate.text) for f in found.chosen],
            considered=[ranked.candidate.text for ranked, _ in found.considered],
        )

    def _start(self, asked: Asked, task: str, query: Any) -> Answer:
        with transaction.atomic():
            started = interaction.start(asked.caller, interaction.Start(task=task, k=K), query)
            work = started.interaction.pk
            log = logged(work)
        handed = started.handed_out
        return Answer(
            lessons=[Handed(id=f.ranked.candidate.lesson_id, text=f.ranked.candidate.text) for f in handed.lessons],
            context=handed.context, interaction=work, log=log, at_once=True,
        )  # fmt: skip

    def check(self, seen: Words, scope: Scope, asked: Asked, answer: Answer) -> None:
        """Tells what is wrong with an answer."""
        policy = self._board.known(seen, asked.place)
        gated = policy is not None and policy.state == State.GATED
        settled = 0
        for lesson in answer.lessons:
            sampled = answer.log.get(lesson.id, ("", 0.0))[0] == "probation"
            known = self._check_text(seen, scope, lesson.text, gated=gated, sampled=sampled)
            settled += known is not None
            self._tally.add("samples", sampled)
        self._tally.add("checked", settled)
        self._tally.add("overlapped", len(answer.lessons) - settled)
        for text in answer.considered:
            self._check_considered(seen, text)
        if answer.context is not None and marks(answer.context) != [
            m for each in answer.lessons for m in marks(each.text)
        ]:
            self._tally.fault("the context holds other lessons than the answer", answer.context)
        if answer.interaction is not None:
            self._check_log(answer, whole=answer.at_once or settled == len(answer.lessons))

    def _check_text(self, seen: Words, scope: Scope, text: str, *, gated: bool, sampled: bool) -> Known | None:
        (mark,) = marks(text)
        if all(mark.place != slot.place for slot in scope.slots):
            self._tally.fault("another account's", text)
        known = self._board.known(seen, mark.place)
        if wrong := fault(known, mark, gated=gated, sampled=sampled):
            self._tally.fault(wrong, text)
        return known

    def _check_considered(self, seen: Words, text: str) -> None:
        """Candidates may be quarantined, and are never out of service."""
        (mark,) = marks(text)
        known = self._board.known(seen, mark.place)
        if known and (known.state in (State.GONE, State.ERASED) or known.incarnation != mark.incarnation):
            self._tally.fault("out of service, and considered", text)

    def _check_log(self, answer: Answer, *, whole: bool) -> None:
        """The log has the lessons of the answer, each once; and samples are there by their own coin alone."""
        if whole and sorted(answer.log) != sorted(lesson.id for lesson in answer.lessons):
            self._tally.fault("logged otherwise than answered", str(answer.interaction))
        for lesson, (exposure, probability) in answer.log.items():
            if exposure == "probation" and not interaction_fraction(lesson, answer.interaction) < probability <= 0.5:
                self._tally.fault("a sample that its coin does not allow", str(lesson))


def logged(work: UUID) -> dict[UUID, tuple[str, float]]:
    return {lesson: (exposure, probability) for lesson, exposure, probability in fetch(USAGE, [work])}


class Client(Asker):
    """Asks over HTTP, on one connection for as long as it lasts."""

    def __init__(self, board: Board, tally: Tally, scopes: Sequence[Scope], seed: int, port: int) -> None:
        super().__init__(board, tally, scopes, seed)
        self._http = HTTPConnection("127.0.0.1", port, timeout=60)
        self._earlier = deque[tuple[Asked, str, str, str]](maxlen=KEPT)  # account, task, Idempotency-Key, interaction

    def answer(self, asked: Asked, task: str) -> Answer:
        """Also asks for something earlier again, where what was erased must not be either."""
        if self._earlier and self._rng.random() < 0.5:
            self._again()
        if self._rng.random() < 0.5:
            body = self._call(asked, "POST", "retrieve/", {"task": task, "k": K, "explain": True})
            considered = [row["text"] for row in body["explain"]]
            return Answer(lessons=_handed(body), considered=considered)
        key = uuid4().hex
        body = self._call(asked, "POST", "interactions/", {"task": task, "k": K}, key)
        self._earlier.append((asked, task, key, body["id"]))
        work = UUID(body["id"])
        return Answer(lessons=_handed(body), context=body["context"], interaction=work, log=logged(work))

    def _again(self) -> None:
        """The same request again, or the record of it."""
        asked, task, key, work = self._rng.choice(self._earlier)
        seen = self._board.seen()
        if self._rng.random() < 0.5:
            body = self._call(asked, "POST", "interactions/", {"task": task, "k": K}, key)
        else:
            body = self._call(asked, "GET", f"interactions/{work}/")
        for mark in marks(json.dumps(body)):
            known = self._board.known(seen, mark.place)
            if known and known.state == State.ERASED and known.incarnation == mark.incarnation:
                self._tally.fault("erased, and in what is kept", json.dumps(body))
        self._tally.add("again")

    def _call(self, asked: Asked, method: str, path: str, body: Any = None, key: str = "") -> dict[str, Any]:
        """The body of the answer; {} where the store says that it keeps no answer to this key any more."""
        headers = {"Authorization": f"Bearer {asked.secret}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        status, said = self._answered(method, f"/api/v1/{path}", body and json.dumps(body), headers)
        if status == HTTPStatus.CONFLICT and key:
            return {}
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise RuntimeError(f"{method} {path}: {status} {said[:500]!r}")
        told: dict[str, Any] = json.loads(said)
        return told

    def _answered(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        """The status and the body; where the store is too busy, it is asked again, as it says."""
        while True:
            self._http.request(method, path, body, headers)
            with self._http.getresponse() as answer:
                status, said = answer.status, answer.read()
            if status != HTTPStatus.SERVICE_UNAVAILABLE:
                return status, said
            self._tally.add("refused")
            time.sleep(RETRY_SECONDS)


def _handed(body: dict[str, Any]) -> list[Handed]:
    return [Handed(id=UUID(lesson["id"]), text=lesson["text"]) for lesson in body["lessons"]]
