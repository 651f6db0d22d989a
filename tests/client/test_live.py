"""Both clients against the site on a real port."""

import asyncio
from collections.abc import Callable

import pytest

import sonder_client as sonder
from memory.models import Lesson, Outcome
from sonder_client import AsyncSonder, Sonder
from tests.conftest import Agent
from tests.mcp.clients import served

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Pass `timeout=30` to every `requests.get` call, because without it a dead peer blocks the worker forever."
TASK = "pass a timeout to the requests.get call of the worker"


def test_the_loop_by_calling_and_by_awaiting(agent: Agent, rival: Agent, lesson: Callable[..., Lesson]) -> None:
    lesson(TEXT)

    async def loop(address: str) -> list[str]:
        async with AsyncSonder(address, agent.token) as client:
            async with client.interaction(TASK, project="api") as it:
                assert TEXT in it.context
                await it.respond("done")
                await it.outcome("failed")
            with pytest.raises(ZeroDivisionError):
                async with client.interaction(TASK, failures=ArithmeticError):
                    _ = 1 // 0
            await asyncio.gather(*(client.record_fact("api", f"Machine {n} is up.") for n in range(5)))
            return sorted([fact.text async for fact in client.list_facts(project="api")])

    with served() as address:
        with Sonder(address, agent.token) as client, client.interaction(TASK) as it:
            assert TEXT in it.context
            it.respond("done")
            it.outcome("accepted")
        assert asyncio.run(loop(address)) == [f"Machine {n} is up." for n in range(5)]
        with Sonder(address, rival.token) as other, pytest.raises(sonder.NotFound):
            other.get_interaction(it.id)
    assert sorted(Outcome.objects.values_list("signal", flat=True)) == ["accepted", "failed", "failed"]
    with pytest.raises(sonder.Unreachable):
        Sonder(address, agent.token, retries=sonder.Retries(attempts=1)).start_interaction(TASK)
