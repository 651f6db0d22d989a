"""`AsyncSonder`, for programs that await, under asyncio or trio."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from uuid import UUID

import anyio
import httpx

from sonder_client import answers, knowledge, loop, teamwork
from sonder_client.call import Call, Listing
from sonder_client.connection import settings
from sonder_client.exchange import Exchange, failure_of, page_call, page_of
from sonder_client.retries import Retries

P = ParamSpec("P")
T = TypeVar("T")


def _does(build: Callable[P, Call[T]]) -> Callable[Concatenate["AsyncSonder", P], Coroutine[Any, Any, T]]:
    async def method(self: "AsyncSonder", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(*args, **kwargs))

    method.__doc__, method.__name__ = build.__doc__, build.__name__
    return method


def _lists(build: Callable[P, Listing[T]]) -> Callable[Concatenate["AsyncSonder", P], AsyncIterator[T]]:
    def method(self: "AsyncSonder", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self.rows(build(*args, **kwargs))

    method.__doc__, method.__name__ = build.__doc__, build.__name__
    return method


class AsyncSonder:
    """A connection with one key. Tasks of one event loop may share it. Every method raises what `errors` has.

    `timeout` is how long one attempt may wait for the server, in seconds; `retries` how often it is tried.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url, self._retries = url, retries or Retries()
        self._http = httpx.AsyncClient(**settings(url, key, timeout), transport=transport)

    def __repr__(self) -> str:
        return f"AsyncSonder({self._url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """The answer to a request, tried again where that is safe and may help."""
        exchange = Exchange(call, self._retries)
        while True:
            try:
                answer = await self._http.request(**exchange.request)
            except httpx.TransportError as error:
                pause = exchange.failed(error)
            else:
                if (wait := exchange.pause(answer)) is None:
                    return exchange.value(answer)
                pause = wait
            await anyio.sleep(pause)

    async def rows(self, listing: Listing[T]) -> AsyncIterator[T]:
        """Every row of a list; pages are asked for as they are needed."""
        page = page_of(listing, await self.send(page_call(listing, None)))
        while True:
            for row in page.rows:
                yield row
            if page.cursor is None:
                return
            page = page_of(listing, await self.send(page_call(listing, page.cursor)))

    @asynccontextmanager
    async def interaction(
        self,
        task: str,
        *,
        project: str | None = None,
        session: str | None = None,
        k: int = 5,
        model: str = "",
        failures: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> AsyncIterator["AsyncWork"]:
        """A piece of work from its start. An exception of `failures` that leaves it is reported as its failure."""
        started = await self.start_interaction(task, project=project, session=session, k=k, model=model)
        work = AsyncWork(self, task, started)
        try:
            yield work
        except failures as error:
            await work.outcome("failed", detail=failure_of(error))
            raise

    start_interaction = _does(loop.start_interaction)
    finish_interaction = _does(loop.finish_interaction)
    record_outcome = _does(loop.record_outcome)
    retrieve_lessons = _does(loop.retrieve_lessons)
    get_interaction = _does(loop.get_interaction)
    list_interactions = _lists(loop.list_interactions)
    list_outcomes = _lists(loop.list_outcomes)

    list_preferences = _lists(knowledge.list_preferences)
    list_facts = _lists(knowledge.list_facts)
    record_fact = _does(knowledge.record_fact)
    retract_fact = _does(knowledge.retract_fact)
    correct_fact = _does(knowledge.correct_fact)

    list_sessions = _lists(teamwork.list_sessions)
    get_session = _does(teamwork.get_session)
    name_session = _does(teamwork.name_session)
    claim_turn = _does(teamwork.claim_turn)
    keep_turn = _does(teamwork.keep_turn)
    release_turn = _does(teamwork.release_turn)

    list_tasks = _lists(teamwork.list_tasks)
    add_task = _does(teamwork.add_task)
    get_task = _does(teamwork.get_task)
    change_task = _does(teamwork.change_task)
    list_task_events = _lists(teamwork.list_task_events)
    note_task = _does(teamwork.note_task)
    add_dependency = _does(teamwork.add_dependency)
    remove_dependency = _does(teamwork.remove_dependency)


class AsyncWork:
    """One interaction, from its start to its outcome."""

    def __init__(self, sonder: AsyncSonder, task: str, started: answers.Started) -> None:
        self._sonder = sonder
        self.task = task
        self.started = started

    @property
    def id(self) -> UUID:
        return self.started.id

    @property
    def context(self) -> str:
        """The text for the prompt."""
        return self.started.context

    async def respond(
        self, response: str, *, tokens_in: int | None = None, tokens_out: int | None = None
    ) -> answers.Interaction:
        """Hands in what was answered."""
        return await self._sonder.finish_interaction(
            self.id, response=response, tokens_in=tokens_in, tokens_out=tokens_out
        )

    async def outcome(self, signal: str, *, detail: str = "") -> answers.Reported:
        """Reports how it went."""
        return await self._sonder.record_outcome(self.id, signal, detail=detail)
