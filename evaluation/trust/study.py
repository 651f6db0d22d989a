"""Every policy in every world with every seed, on several cores."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from evaluation.trust.loop import run
from evaluation.trust.measures import Measures, measure, served
from evaluation.trust.policies import NONE, POLICIES, Constants
from evaluation.trust.world import build
from evaluation.trust.worlds import WORLDS


@dataclass(frozen=True, kw_only=True)
class Job:
    """One world with one seed; every policy meets the same tasks, queries and chances in it."""

    world: str
    seed: int
    policies: tuple[str, ...]
    constants: Constants


def play(job: Job) -> Mapping[str, Measures]:
    """Each policy's run. The one without a policy comes first: it says which servings there were to prevent."""
    world = build(WORLDS[job.world], job.seed)
    traces = {}
    for name in dict.fromkeys((NONE, *job.policies)):
        policy = POLICIES[name][1](world, job.constants)
        traces[name] = policy, run(world, policy)
    unguarded = served(world, traces[NONE][1])
    return {name: measure(world, trace, policy, unguarded) for name, (policy, trace) in traces.items()}


def play_all(jobs: Sequence[Job], cores: int) -> Iterator[tuple[Job, Mapping[str, Measures]]]:
    """Every job, as they come to an end."""
    if cores == 1:
        yield from ((job, play(job)) for job in jobs)
        return
    with _one_thread_each(), ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(play, job): job for job in jobs}
        yield from ((waiting[done], done.result()) for done in as_completed(waiting))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile get one thread each for matrices: they share the cores already."""
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def by_world(
    found: Iterable[tuple[Job, Mapping[str, Measures]]],
) -> dict[str, dict[str, list[Measures]]]:
    """World, then policy, then the runs in the order of their seeds."""
    result: dict[str, dict[str, list[Measures]]] = {}
    for job, runs in sorted(found, key=lambda each: (list(WORLDS).index(each[0].world), each[0].seed)):
        for policy in (name for name in POLICIES if name in runs):
            result.setdefault(job.world, {}).setdefault(policy, []).append(runs[policy])
    return result
