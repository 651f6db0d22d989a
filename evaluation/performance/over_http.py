"""One retrieval over HTTP, by the product's own web server, beside what it is made of: embedding and SQL."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from django.test import Client

from evaluation.performance.bench import Bench
from evaluation.performance.finding import Finding, compared
from evaluation.performance.replay import Replay
from evaluation.performance.store import ROOT
from evaluation.performance.timing import Floats, Side, in_turns, mean
from memory.embedding.active import provider
from memory.models import Account
from memory.models.base import new_id
from memory.services.keys import create_key

HOST: Final = "127.0.0.1"
PATH: Final = "/api/v1/interactions/"
CLIENTS: Final = 16
REQUESTS: Final = 480  # of all clients together
START_SECONDS: Final = 60


@contextmanager
def server(database: str) -> Iterator[int]:
    """The product's web process on a database; gives its port."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        descriptor, port = listener.fileno(), int(listener.getsockname()[1])
        process = subprocess.Popen(
            [sys.executable, "-m", "sonder_site.web", str(descriptor)],
            cwd=ROOT,
            env={**os.environ, "BENCH_DATABASE": database},
            pass_fds=(descriptor,),
        )
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


@dataclass(frozen=True, kw_only=True)
class Caller:
    """An agent with a connection that it keeps."""

    connection: http.client.HTTPConnection
    token: str

    def start(self, task: str) -> int:
        """Starts an interaction; returns how many lessons came with it."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self.connection.request("POST", PATH, json.dumps({"task": task}), headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 201:
            raise RuntimeError(f"The server answered {response.status}: {body.decode()[:500]}")
        return len(json.loads(body)["lessons"])


def _request(task: str, token: str) -> None:
    """The same request to the application in this process."""
    headers = {"Authorization": f"Bearer {token}", "Host": HOST}
    answer = Client().post(PATH, {"task": task}, content_type="application/json", headers=headers)
    if answer.status_code != 201:
        raise RuntimeError(f"The application answered {answer.status_code}: {answer.content.decode()[:500]}")


def speed(bench: Bench) -> list[Finding]:
    account = Account.objects.order_by("pk").first()
    assert account is not None
    token = create_key(account, name="benchmark over HTTP", source="caller", scopes=["loop"]).secret
    tasks = bench.tasks.texts
    replays = [Replay([partial(_request, task, token)], since=new_id()) for task in tasks]

    with server(bench.shape.database) as port:
        caller = Caller(connection=http.client.HTTPConnection(HOST, port, timeout=START_SECONDS), token=token)
        number = iter(range(10**9))
        # A number makes the task new to the server's cache of queries, and changes neither words nor lessons much.
        first = Side(act=lambda i: caller.start(f"{tasks[i]} {next(number)}"))
        again = Side(act=lambda i: caller.start(tasks[i]), before=lambda i: caller.start(tasks[i]))
        # Each by itself and warm: one right after the other takes longer than the two, which would be a softer bar.
        embed = Side(act=lambda i: provider().embed([tasks[i]]))  # unlike `embed_query`, remembers nothing
        sql = Side(act=lambda i: replays[i](), before=lambda i: replays[i]())
        taken = in_turns({"first": first, "again": again, "embed": embed, "sql": sql})
        rate = throughput(port, token, tasks)
    return _found(bench, taken, rate)


def _found(bench: Bench, taken: dict[str, Floats], rate: Floats) -> list[Finding]:
    return [
        compared(
            bench.lessons,
            "http.first",
            "one retrieval over HTTP, usage written",
            ours=taken["first"],
            floor=taken["embed"] + taken["sql"],
            against="embedding + replay of its SQL by psycopg",
            at_most=1.25 if bench.judged else None,
        ),
        compared(
            bench.lessons,
            "http.again",
            "the same for a task that was asked before",
            ours=taken["again"],
            floor=taken["sql"],
            against="replay of its SQL by psycopg",
        ),
        Finding(
            key="http.rate",
            lessons=bench.lessons,
            what=f"retrievals, {CLIENTS} clients",
            result=mean(rate),
            unit="per second",
        ),
    ]


def throughput(port: int, token: str, tasks: list[str]) -> Floats:
    """Retrievals a second of all clients together, in each of a few stretches."""

    def work(n: int) -> None:
        own = Caller(connection=http.client.HTTPConnection(HOST, port, timeout=START_SECONDS), token=token)
        for i in range(REQUESTS // CLIENTS // 4):
            own.start(f"{tasks[(n * 31 + i) % len(tasks)]} {n} {i} {time.monotonic_ns()}")

    rates = []
    with ThreadPoolExecutor(CLIENTS) as pool:
        for _ in range(4):
            begin = time.perf_counter()
            list(pool.map(work, range(CLIENTS)))
            rates.append(REQUESTS // 4 / (time.perf_counter() - begin))
    return np.array(rates)
