"""The product on a Redis and a PostgreSQL that die, hang or stay away, and under many clients at once: every report is
taken in, and credited once.

`KILLS=n` and `OUTCOMES=n` make the same tests long ones.
"""

import os
import random
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.system.crowd import Chain, chains
from tests.system.figures import tell
from tests.system.killing import SEED
from tests.system.product import Agent, Client, Product, at_work, go_on, product
from tests.system.started import redis_server
from tests.system.stores import kill, postmaster, wait_until

STORES_KILLED = int(os.environ.get("STORES_KILLED", "2"))  # times, each of PostgreSQL and Redis
OUTCOMES = int(os.environ.get("OUTCOMES", "320"))  # from many clients
CLIENTS = 32
WORK = 8  # interactions on each side of what happens to the broker
BOUND_SECONDS = 10.0  # for one request on a loaded machine; a Redis that hangs costs it two seconds
DOUBLED = 0.1  # of the requests of many clients
PATIENCE = 120 + OUTCOMES / 5  # seconds for what is done for all of these outcomes


@pytest.fixture(scope="module")
def whole(template: Path) -> Iterator[Product]:
    with redis_server() as redis, product(template, redis) as one:
        yield one


@pytest.fixture
def agents(whole: Product) -> Iterator[list[Agent]]:
    with ExitStack() as stack:
        yield [Agent(stack.enter_context(whole.http()), whole.key) for _ in range(2)]


def all_credited(agent: Agent) -> float:
    """Waits for it; how many seconds it took."""
    started = time.monotonic()
    wait_until(lambda: not agent.waiting())
    return time.monotonic() - started


def accounted_for(row: str, whole: Product, agents: list[Agent], before: set[str], **figures: float) -> None:
    """What the agents were told to be stored is in the store, once, and nothing else is; the sums equal a rebuild."""
    said = {outcome for agent in agents for outcome in agent.outcomes}
    stored = set(whole.story.play("outcomes")["ids"]) - before
    found = whole.story.play("check")
    tell(
        row, outcomes=len(said), lost=len(said - stored) + found["uncredited"], retries=sum(a.refused for a in agents),
        twice=len(stored - said) + found["differences"], wrong=len(found["wrong"]) + found["gaps"], **figures,
    )  # fmt: skip
    assert len(said) == sum(len(agent.outcomes) for agent in agents)
    assert stored == said
    assert found.pop("outcomes") >= len(said)
    assert found.pop("credits") > 0
    assert found == {"uncredited": 0, "gaps": False, "wrong": [], "differences": 0}


def hangs(whole: Product, agent: Agent) -> None:
    """It takes connections and answers nothing; then it goes on."""
    whole.redis.hold()
    agent.work(WORK)
    whole.redis.go_on()
    all_credited(agent)


def dies_in_mid_run(whole: Product, agents: list[Agent], moment: float) -> float:
    """It dies while agents work, and comes back; seconds until all was credited."""
    with at_work(agents) as working:
        go_on(agents, working, 1)
        time.sleep(moment)
        whole.redis.kill()
        go_on(agents, working, WORK)
        whole.redis.start()
        go_on(agents, working)
    return all_credited(agents[0])  # the worker finds its broker again by itself


def test_a_redis_that_hangs_dies_or_stays_away_loses_no_report_and_holds_up_nobody(
    whole: Product, agents: list[Agent]
) -> None:
    rng, before = random.Random(SEED), set(whole.story.play("outcomes")["ids"])
    hangs(whole, agents[0])
    seconds = max(dies_in_mid_run(whole, agents, rng.uniform(0, 0.3)) for _ in range(STORES_KILLED))
    whole.redis.kill()
    agents[0].work(WORK)
    assert agents[0].waiting()  # no message comes through, and the schedule's do not either
    slowest = max(agent.slowest for agent in agents)
    accounted_for("redis", whole, agents, before, kills=STORES_KILLED, seconds=seconds, slowest=slowest)
    whole.redis.start()
    assert sum(agent.refused for agent in agents) == 0
    assert min(agent.handed_out for agent in agents) > 0
    assert slowest < BOUND_SECONDS


def a_backend(whole: Product, rng: random.Random) -> int:
    """A process of PostgreSQL that serves a connection."""
    while True:
        number = postmaster(whole.var)
        if number is not None and psutil.pid_exists(number):
            serving = [p for p in psutil.Process(number).children() if "postgres: sonder" in " ".join(p.cmdline())]
            if serving:
                return rng.choice(serving).pid
        time.sleep(0.01)


def test_a_postgresql_that_is_killed_loses_nothing_it_has_acknowledged_and_does_nothing_twice(
    whole: Product, agents: list[Agent]
) -> None:
    rng, before = random.Random(SEED), set(whole.story.play("outcomes")["ids"])
    with at_work(agents) as working:
        for i in range(STORES_KILLED):
            go_on(agents, working)
            time.sleep(rng.uniform(0, 0.3))
            kill(a_backend(whole, rng) if i % 2 else postmaster(whole.var))
            go_on(agents, working)
    assert sum(agent.refused for agent in agents) > 0
    seconds = all_credited(agents[0])
    accounted_for("postgresql", whole, agents, before, kills=STORES_KILLED, seconds=seconds)


class Crowd:
    """Clients who say what was planned, each word of a chain after the one before it, and some words twice."""

    def __init__(self, http: httpx.Client, told: dict[str, Any]) -> None:
        self._http, self._keys, self._works = http, told["keys"], told["works"]
        self._again: deque[tuple[str, str, str, str, str]] = (
            deque()
        )  # source, path, signal, key, and the id it was given
        self.said = set[str]()

    def play(self, own: list[Chain], seed: int) -> list[Client]:
        rng, waiting = random.Random(seed), [(chain, list(chain.signals)) for chain in own]
        clients = {source: Client(self._http, key) for source, key in self._keys.items()}
        while waiting:
            chain, signals = chosen = rng.choice(waiting)
            self._say(clients, chain, signals.pop(0), rng)
            if not signals:
                waiting.remove(chosen)
            if self._again and rng.random() < DOUBLED:
                self._repeat(clients)
        return list(clients.values())

    def _say(self, clients: dict[str, Client], chain: Chain, signal: str, rng: random.Random) -> None:
        path, key = f"interactions/{self._works[chain.work]}/outcomes/", f"{rng.getrandbits(128):032x}"
        told = clients[chain.source].call("POST", path, {"signal": signal}, key)
        self.said.add(told["id"])
        self._again.append((chain.source, path, signal, key, told["id"]))

    def _repeat(self, clients: dict[str, Client]) -> None:
        """What somebody said before, with all that was said since in between."""
        source, path, signal, key, known = self._again.popleft()
        assert clients[source].call("POST", path, {"signal": signal}, key)["id"] == known


def test_many_clients_with_repetitions_and_corrections_end_in_the_same_credit_as_one_after_the_other(
    whole: Product,
) -> None:
    before = whole.story.play("outcomes")["ids"]
    told = whole.story.play("crowd", OUTCOMES, patience=PATIENCE)
    planned, started = chains(OUTCOMES), time.monotonic()
    with whole.http() as http, ThreadPoolExecutor(CLIENTS) as pool:
        crowd = Crowd(http, told)
        played = [pool.submit(crowd.play, planned[i::CLIENTS], i) for i in range(CLIENTS)]
        clients = [client for each in played for client in each.result()]
    wait_until(lambda: whole.story.play("outcomes")["uncredited"] == 0, PATIENCE, every=0.5)
    seconds = time.monotonic() - started
    stored = set(whole.story.play("outcomes")["ids"]) - set(before)
    found = whole.story.play("check", patience=PATIENCE)
    differing = whole.story.play("sequential", OUTCOMES, patience=PATIENCE)["differing"]
    repeated = sum(client.replayed for client in clients)
    tell(
        "clients", clients=CLIENTS, outcomes=len(crowd.said), repeated=repeated, seconds=seconds,
        lost=len(crowd.said - stored) + found["uncredited"], twice=len(stored - crowd.said) + found["differences"],
        wrong=len(found["wrong"]) + len(differing) + found["gaps"],
    )  # fmt: skip
    assert stored == crowd.said
    assert (len(stored), differing) == (OUTCOMES, [])
    assert repeated > OUTCOMES * DOUBLED / 4
    assert (found["uncredited"], found["gaps"], found["wrong"], found["differences"]) == (0, False, [], 0)
