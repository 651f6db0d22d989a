"""How much memory the processes hold, and how long they take to start."""

import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from evaluation.growth import bounds
from evaluation.growth.agents import at_work
from evaluation.growth.stand import SETTINGS, Filled, Stand, filled, parameters, started
from evaluation.growth.watch import PROCESSES, of_postgresql, of_process
from evaluation.report import Figure, Progress, Report, Table
from evaluation.running import Up, new_store, up, wait_until

RETRIEVALS: Final = 500
AGENTS: Final = 8
SOON_SECONDS: Final = 10.0  # the worker has finished its start by then
STOP_SECONDS: Final = 30.0
WEB_MB, WORKER_MB = 400.0, 350.0
READY_SECONDS, FIRST_SECONDS = 10.0, 30.0

HOW: Final = """
Memory is the resident set of each process as the kernel counts it, what processes share counted in each; PostgreSQL's
is the proportional set of all its processes, what they share counted once. It is read ten seconds after the product is
ready, and again after 500 retrievals by eight agents. A start is timed from the command `manage.py up` until it says
that it is ready, on a store that is set up and stopped again before each start; a first start in an empty folder, in
which it makes the cluster, migrates it and opens the embedding space with the bundled model. The files of the product
had been read before, so the disk's cache is warm.
""".strip().replace("\n", " ")

LIMITS: Final = (
    "A machine that reads its files for the first time takes longer to start.",
    "Another embedding model has another size.",
)


def measure(tell: Progress) -> Report:
    """Memory after the start and after 500 retrievals; STARTS and FIRST_STARTS."""
    began = time.monotonic()
    starts, firsts = bounds.number("STARTS"), bounds.number("FIRST_STARTS")
    lessons, steps = bounds.number("GROWTH_LESSONS"), starts + firsts + 1
    with filled(lessons) as store:
        tell(0, steps, "memory")
        held = _held(store)
        again = [_again(store, n, steps, tell) for n in range(starts)]
    first = []
    for n in range(firsts):
        tell(starts + n + 1, steps, "first starts")
        first.append(_first())
    return Report(
        name="footprint",
        title="Footprint: memory and starts",
        question="How much memory does it take, and how long until it is ready?",
        answer=_answer(held, again, first),
        command="make growth ARGS=footprint",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.monotonic() - began, 1),
        parameters={"lessons": lessons, **parameters(store.machine)},
        figures=tuple(_figures(held, again, first)),
        how=HOW,
        limits=LIMITS,
        tables=(_memory(held), _starts(again, first)),
    )


def _held(store: Filled) -> dict[str, dict[str, float]]:
    """Of each process, what it holds when it has started and after RETRIEVALS."""
    with started(store) as stand:
        time.sleep(SOON_SECONDS)
        looks = {"after the start": _look(stand)}
        agents = stand.agents(AGENTS)
        with at_work(agents):
            wait_until(lambda: sum(len(agent.starts) for agent in agents) >= RETRIEVALS)
        looks[f"after {RETRIEVALS} retrievals"] = _look(stand)
        _stop(stand.running)
    return looks


def _look(stand: Stand) -> dict[str, float]:
    held = of_postgresql(stand.filled.var)
    for word, process in stand.running.services().items():
        held |= of_process(PROCESSES[word], process)
    return held


def _stop(running: Up) -> None:
    """As Ctrl-C does; all of it has ended afterwards."""
    running.process.terminate()
    running.process.wait(STOP_SECONDS)


def _again(store: Filled, n: int, steps: int, tell: Progress) -> float:
    tell(n + 1, steps, "starts")
    began = time.monotonic()
    with started(store) as stand:
        took = time.monotonic() - began
        _stop(stand.running)
    return took


def _first() -> float:
    with new_store() as var:
        began = time.monotonic()
        with up(var, **SETTINGS) as running:
            took = time.monotonic() - began
            _stop(running)
    return took


def _figures(held: Mapping[str, Mapping[str, float]], again: Sequence[float], first: Sequence[float]) -> list[Figure]:
    web, worker = (max(look[name] for look in held.values()) for name in ("web_mb", "worker_mb"))
    ready, new = statistics.median(again), max(first)
    return [
        _figure("web_mb", "web process", round(web), "MB", WEB_MB),
        _figure("worker_mb", "worker", round(worker), "MB", WORKER_MB),
        _figure(
            "ready_s", f"until ready on a set-up store, median of {len(again)}", round(ready, 1), "s", READY_SECONDS
        ),
        _figure(
            "first_s", f"until ready in an empty folder, slowest of {len(first)}", round(new, 1), "s", FIRST_SECONDS
        ),
    ]


def _figure(key: str, label: str, value: float, unit: str, most: float) -> Figure:
    bar = f"at most {most:.0f} {unit}"
    return Figure(key=f"footprint.{key}", label=label, value=value, unit=unit, bar=bar, met=value <= most)


def _answer(held: Mapping[str, Mapping[str, float]], again: Sequence[float], first: Sequence[float]) -> str:
    last = list(held.values())[-1]
    return (
        f"The web process holds {last['web_mb']:.0f} MB with the model, the worker {last['worker_mb']:.0f} MB; ready "
        f"after {statistics.median(again):.1f} s, the first time after {statistics.median(first):.1f} s."
    )


def _memory(held: Mapping[str, Mapping[str, float]]) -> Table:
    names = {"web_mb": "web", "worker_mb": "worker", "beat_mb": "schedule", "postgresql_mb": "PostgreSQL",
             "postgresql_own_mb": "of it not shared", "web_threads": "threads of web",
             "worker_threads": "threads of worker", "web_files": "files of web"}  # fmt: skip
    return Table(
        title="Memory, MB",
        columns=("when", *names.values()),
        rows=tuple((when, *(round(look[name]) for name in names)) for when, look in held.items()),
    )


def _starts(again: Sequence[float], first: Sequence[float]) -> Table:
    rows = (("set-up store", again), ("empty folder", first))
    return Table(
        title="Seconds until ready",
        columns=("on", "starts", "fastest", "median", "slowest"),
        rows=tuple(
            (what, len(all_), *(round(each, 1) for each in (min(all_), statistics.median(all_), max(all_))))
            for what, all_ in rows
        ),
    )
