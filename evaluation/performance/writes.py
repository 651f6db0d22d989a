"""What the service layer adds to the writing of one piece of work, and many writers at once."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final
from unittest.mock import patch
from uuid import UUID

from django.db import OperationalError, transaction

from evaluation.performance.bench import Bench
from evaluation.performance.finding import Bar, Finding, plain
from evaluation.performance.replay import Replay
from evaluation.performance.store import Shape, connect, disconnect, scratch
from evaluation.performance.timing import Side, in_turns, median_ms, ratio
from memory.models import Account, Credit, LessonUsage
from memory.models.base import new_id
from memory.search import EmbeddedQuery
from memory.services import interaction, outcome, retrieval
from memory.services.caller import Caller
from memory.services.credit import credit
from memory.services.keys import create_key
from memory.services.retrieval import Choice
from memory.services.standing import differences

SHAPE: Final = Shape(lessons=10_000)
COHORT: Final = 5  # lessons of each piece of work
FEW: Final = 10  # tasks that many writers do over and over: their lessons get records as long as what is weighed
WRITERS: Final = 16
EACH: Final = 30  # pieces of work of each writer
SIGNALS: Final = ("accepted", "edited", "failed")
CHOOSE: Final = "memory.services.interaction.choose"
HALF: Final = Bar(limit=0.5, at_least=True)
NONE: Final = Bar(limit=0)


@dataclass(frozen=True, kw_only=True)
class Writer:
    """An agent whose searches were done before."""

    caller: Caller
    queries: list[EmbeddedQuery]
    chosen: dict[str, Choice]  # what each task's search found

    @contextmanager
    def searched(self) -> Iterator[None]:
        """The searches' answers in the place of the searches."""
        with patch(CHOOSE, lambda _, __, query, ___: self.chosen[query.text]):
            yield

    def work(self, n: int, pk: UUID, signal: str) -> list[Callable[[], object]]:
        """Three transactions: the interaction with its exposures, the report, the credit."""
        query = self.queries[n % len(self.queries)]
        request = interaction.Start(task=query.text, id=pk)
        return [
            partial(interaction.start, self.caller, request, query),
            partial(outcome.report, self.caller, pk, signal),
            partial(credit, pk),
        ]


def measure(bench: Bench) -> list[Finding]:
    with scratch(bench.shape) as database:
        writer = _writer(bench)
        few = replace(writer, queries=writer.queries[:FEW])
        with writer.searched():
            return [
                _alone(bench, "rate", "lessons of a usual record", writer),
                *_together(bench, few, database),
                _alone(bench, "rate_of_long_records", "lessons of a long record", few),
            ]


def _writer(bench: Bench) -> Writer:
    """With the tasks whose searches find a whole cohort."""
    account = Account.objects.order_by("pk")[0]
    key = create_key(account, name="writer", source="caller", scopes=["loop"]).key
    chosen: dict[str, Choice] = {}
    queries: list[EmbeddedQuery] = []
    for i in range(len(bench.tasks.texts)):
        query = bench.query(i)
        with transaction.atomic():
            choice = retrieval.choose(new_id(), account, query, COHORT)
        if len(choice.exposures) == COHORT:
            queries.append(query)
            chosen[query.text] = choice
    caller = Caller(account_id=account.pk, source="caller", actor=f"api_key:{key.prefix}", key_id=key.pk)
    return Writer(caller=caller, queries=queries, chosen=chosen)


def _alone(bench: Bench, key: str, whose: str, writer: Writer) -> Finding:
    """One writer, beside psycopg with the same statements in the same transactions."""
    began = new_id()
    replays = [Replay(writer.work(n, new_id(), "accepted"), since=began) for n in range(len(writer.queries))]

    def ours(n: int) -> None:
        for piece in writer.work(n, new_id(), "accepted"):
            piece()

    taken = in_turns({"raw": Side(act=lambda n: replays[n % len(replays)]()), "ours": Side(act=ours)})
    return Finding(
        key=f"writes.{key}",
        lessons=bench.lessons,
        what=f"interaction, five exposures, outcome, credit: rate beside raw, {whose}",
        result=ratio(taken["raw"], taken["ours"]),
        unit="x",
        floor="the same statements and transactions by psycopg",
        floor_ms=median_ms(taken["raw"]).value,
        ours_ms=median_ms(taken["ours"]).value,
        bar=HALF,
    )


def _together(bench: Bench, writer: Writer, database: str) -> list[Finding]:
    """Many writers who hand out the same lessons; then everything that they did is counted."""

    def write(number: int) -> tuple[list[UUID], int]:
        connect(database)
        made, refused = [new_id() for _ in range(EACH)], 0
        for n, pk in enumerate(made):
            try:
                for piece in writer.work(number + n, pk, SIGNALS[(number + n) % len(SIGNALS)]):
                    piece()
            except OperationalError:  # a deadlock is one
                refused += 1
        disconnect(database)
        return made, refused

    begin = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        done = list(pool.map(write, range(WRITERS)))
    rate = WRITERS * EACH / (time.perf_counter() - begin)
    made = list(chain.from_iterable(ids for ids, _ in done))
    credited = Credit.objects.filter(pk__in=made, outcome__isnull=False).count()
    used = LessonUsage.objects.filter(interaction__in=made, credited_outcome__isnull=False).count()
    lost = len(made) - credited + COHORT * len(made) - used
    size = bench.lessons
    return [
        plain(size, "writes.together", f"pieces of work, {WRITERS} writers on the same lessons", rate, "per second"),
        plain(size, "writes.refused", "of these, stopped by a deadlock", sum(n for _, n in done), "count", NONE),
        plain(size, "writes.lost", "credits of these that are missing, or missing on an exposure", lost, "count", NONE),
        plain(size, "writes.sums", "sums that a rebuild finds different", len(differences()), "count", NONE),
    ]
