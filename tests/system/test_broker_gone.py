"""The product on a real Redis that dies, hangs or stays away: every report is taken in, and credited once."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx

from memory.management.agent.script import daily
from tests.system.killing import finished, play
from tests.system.started import Redis, Up, redis_server, up
from tests.system.stores import manage, new_store, wait_until

WORK = 30  # interactions on each side of what happens to the broker
BOUND_SECONDS = 10.0  # for one request on a loaded machine; a Redis that hangs costs it two seconds
KEY = re.compile(r"key for agents +(\S+)")


class Agent:
    """Works over HTTP, and notes how long each answer took."""

    def __init__(self, product: Up) -> None:
        found = KEY.search(product.output)
        assert found
        self._http = httpx.Client(
            base_url=f"{product.address}/api/v1/", headers={"Authorization": f"Bearer {found[1]}"}, timeout=60
        )
        self.worked, self.slowest = 0, 0.0

    def close(self) -> None:
        self._http.close()

    def work(self, n: int = WORK) -> None:
        """Starts, answers and judges; every answer must be 2xx."""
        for _ in range(n):
            interaction = self._call("POST", "interactions/", {"task": daily(self.worked)})["id"]
            self._call("PATCH", f"interactions/{interaction}/", {"response": "Done."})
            for signal in ("failed", "accepted") if self.worked % 3 else ("accepted",):
                self._call("POST", f"interactions/{interaction}/outcomes/", {"signal": signal})
            self.worked += 1

    def waiting(self) -> bool:
        return bool(self._call("GET", "outcomes/?credited=false&page_size=1")["results"])

    def _call(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, object]:
        started = time.monotonic()
        answer = self._http.request(method, path, json=body)
        self.slowest = max(self.slowest, time.monotonic() - started)
        assert answer.is_success, answer.text
        return dict(answer.json())


@contextmanager
def product(server: Redis) -> Iterator[Up]:
    """Everything on one Redis: its messages, and the counters of its limits."""
    settings = {
        "CELERY_BROKER_URL": server.url,
        "REDIS_URL": server.url,
        "SONDER_EMBEDDING": "hashing",
        "SONDER_SWEEP_SECONDS": "5",
        "SONDER_THROTTLE_LOOP": "100000/min",
        "SONDER_THROTTLE_READ": "100000/min",
    }
    with new_store() as var:
        var.parent.mkdir(exist_ok=True)
        with up(var, **settings) as one:
            assert manage(var, "seed_demo", SONDER_EMBEDDING="hashing").returncode == 0
            yield one


def hangs(agent: Agent, server: Redis) -> None:
    """It takes connections and answers nothing; then it goes on."""
    server.hold()
    agent.work()
    server.go_on()
    wait_until(lambda: not agent.waiting())


def dies_in_mid_run(agent: Agent, server: Redis) -> None:
    """It dies while the agent works, and comes back."""
    with ThreadPoolExecutor(1) as beside:
        working = beside.submit(agent.work, 3 * WORK)
        time.sleep(0.5)
        server.kill()
        working.result()
    assert agent.waiting()
    server.start()
    agent.work()
    wait_until(lambda: not agent.waiting())  # the worker finds its broker again by itself


def stays_away(agent: Agent, server: Redis) -> None:
    """It dies before the agent works, and that is that."""
    server.kill()
    agent.work()
    assert agent.waiting()


def test_a_redis_that_hangs_dies_or_stays_away_loses_no_report_and_holds_up_nobody() -> None:
    with redis_server() as server, product(server) as one:
        with closing(Agent(one)) as agent:
            agent.work()
            hangs(agent, server)
            dies_in_mid_run(agent, server)
            stays_away(agent, server)
            assert agent.slowest < BOUND_SECONDS
        # Sweeps what is left. Each interaction has one credit, and the sums equal a rebuild.
        found = json.loads(finished(play(one.environment, "check")))
        assert found.pop("outcomes") > agent.worked
        assert found.pop("credits") > agent.worked
        assert found == {"uncredited": 0, "gaps": False, "wrong": [], "differences": 0}
