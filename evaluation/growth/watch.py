"""What the running product holds: memory, files, threads, connections, rows; looked at now and then."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, LiteralString

import psutil
import psycopg

from evaluation.running import Up, postmaster, wait_until
from sonder_site.embedded.cluster import DATABASE, open_cluster

MB: Final = 2**20
PROCESSES: Final = MappingProxyType({"sonder_site.web": "web", "worker": "worker", "beat": "beat"})
COUNTS: Final[Mapping[str, LiteralString]] = MappingProxyType(
    {
        "connections": "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
        "uncredited": "SELECT count(*) FROM outcome WHERE credited_at IS NULL",
        "undistilled": "SELECT count(*) FROM lesson_distillation WHERE state IN ('pending', 'claimed', 'retryable')",
        "interactions": "SELECT count(*) FROM interaction",
        "database_mb": "SELECT pg_database_size(current_database()) / 1048576.0",
    }
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look."""

    at: float  # seconds since the watch began
    values: Mapping[str, float]  # `web_mb`, `web_files`, `web_threads`, ... `postgresql_own_mb`, and those of COUNTS


class Watch:
    """Looks at a running product, from a connection of its own to its database."""

    def __init__(self, running: Up) -> None:
        self._running, self._began = running, time.monotonic()
        self._database: psycopg.Connection[Any] = connect(running.var)
        self.samples: list[Sample] = []

    def look(self) -> Sample:
        """Takes a sample; it costs some milliseconds."""
        values: dict[str, float] = {}
        for word, process in self._running.services().items():
            values |= of_process(PROCESSES[word], process)
        values |= of_postgresql(self._running.var)
        values |= {name: self.ask(statement) for name, statement in COUNTS.items()}
        values["connections"] -= 1  # its own
        sample = Sample(at=time.monotonic() - self._began, values=values)
        self.samples.append(sample)
        return sample

    def ask(self, statement: LiteralString) -> float:
        """One number."""
        row = self._database.execute(statement).fetchone()
        assert row is not None
        return float(row[0])

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Seconds and values of all samples."""
        kept = [sample for sample in self.samples if name in sample.values]
        return [sample.at for sample in kept], [sample.values[name] for sample in kept]

    def close(self) -> None:
        self._database.close()


@contextmanager
def watching(running: Up, every: float) -> Iterator[Watch]:
    """Looks every so many seconds meanwhile, and once more at the end."""
    watch, end = Watch(running), threading.Event()
    faults: list[BaseException] = []

    def go() -> None:
        try:
            while not end.wait(every):
                watch.look()
        except (psutil.Error, psycopg.Error) as fault:
            faults.append(fault)

    watch.look()
    looking = threading.Thread(target=go)
    looking.start()
    try:
        yield watch
    finally:
        end.set()
        looking.join()
        if not faults:
            watch.look()
        watch.close()
    if faults:
        raise faults[0]


def uncredited(watch: Watch) -> float:
    """Outcomes that the worker has not credited yet."""
    return watch.ask(COUNTS["uncredited"])


def caught_up(watch: Watch, patience: float) -> float | None:
    """Seconds until every outcome is credited; None if they are not within `patience` seconds."""
    began = time.monotonic()
    try:
        wait_until(lambda: not uncredited(watch), patience, every=0.2)
    except TimeoutError:
        return None
    return time.monotonic() - began


def connect(var: Path) -> psycopg.Connection[Any]:
    """A connection to the running embedded database of a store."""
    place = open_cluster(var).address
    return psycopg.connect(host=place.host, port=place.port, user=place.user, dbname=DATABASE, autocommit=True)


def of_process(name: str, process: psutil.Process) -> dict[str, float]:
    """Resident memory, open files and threads of one process."""
    with process.oneshot():
        return {
            f"{name}_mb": process.memory_info().rss / MB,
            f"{name}_files": float(process.num_fds()),
            f"{name}_threads": float(process.num_threads()),
        }


def of_postgresql(var: Path) -> dict[str, float]:
    """Memory of all of PostgreSQL's processes: with what they share counted once (PSS), and without it (USS).

    What they share is mostly the cache of pages, which fills up to `shared_buffers` and is meant to.
    """
    number = postmaster(var)
    assert number is not None
    root = psutil.Process(number)
    whole = own = 0.0
    for process in (root, *root.children()):
        try:
            held = process.memory_full_info()
        except psutil.NoSuchProcess:
            continue  # one connection less
        whole, own = whole + held.pss / MB, own + held.uss / MB
    return {"postgresql_mb": whole, "postgresql_own_mb": own}
