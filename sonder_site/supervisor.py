"""Keeps a few processes running together: prefixes their output, restarts what dies, stops all of them as one."""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sonder_site import lifeline

GRACE_SECONDS = 10  # between SIGTERM and SIGKILL
HEALTHY_SECONDS = 10  # a process that lived that long did start; its next failure counts as its first
ATTEMPTS = 5  # failures in a row, none of them healthy, after which everything stops
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.5, 30.0
TAIL_LINES = 15  # of output repeated when everything stops

Say = Callable[[str], None]
Start = Callable[["Service"], Awaitable[asyncio.subprocess.Process]]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One process to keep running."""

    name: str  # prefix of its output
    command: tuple[str, ...]  # program with absolute path, and arguments
    descriptors: tuple[int, ...] = ()  # open files it inherits


class ServiceFailed(Exception):
    """A service cannot be kept running; the message has its last output."""


class _Asked(Exception):
    """A signal asked for the end."""


async def supervise(
    services: Iterable[Service],
    *,
    folder: Path,
    environment: Mapping[str, str],
    say: Say,
    alongside: Iterable[Coroutine[None, None, None]] = (),
) -> None:
    """Runs the services in `folder` until SIGINT or SIGTERM comes; every one of them has ended when it returns.

    Lines for people go to `say`. Coroutines in `alongside` run meanwhile; what they raise ends everything. Raises
    ServiceFailed, with everything stopped, if a service cannot be kept running.
    """
    start = partial(_start, folder=folder, environment=environment)
    failed: ServiceFailed | None = None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_until_asked(say))
            for work in alongside:
                group.create_task(work)
            for service in services:
                group.create_task(_keep(service, start, say))
    except* _Asked:
        pass
    except* ServiceFailed as failures:
        failed = next(error for error in failures.exceptions if isinstance(error, ServiceFailed))
    if failed:
        raise failed


async def _until_asked(say: Say) -> None:
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    await asked.wait()
    say("Stopping.")
    raise _Asked


async def _keep(service: Service, start: Start, say: Say) -> None:
    clock = asyncio.get_running_loop().time
    failures = 0
    while True:
        started = clock()
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        code = await _live(service, start, say, tail)
        failures = 1 if clock() - started >= HEALTHY_SECONDS else failures + 1
        if failures >= ATTEMPTS:
            last = "\n".join(tail) or "(it said nothing)"
            raise ServiceFailed(f"{service.name} does not start ({_ending(code)}). Its last output:\n{last}")
        delay = min(FIRST_DELAY_SECONDS * 2 ** (failures - 1), LONGEST_DELAY_SECONDS)
        say(f"{service.name} ended ({_ending(code)}); starting it again in {delay:g} s.")
        await asyncio.sleep(delay)


async def _live(service: Service, start: Start, say: Say, tail: deque[str]) -> int:
    """One life of a service: its exit code."""
    process = await start(service)
    assert process.stdout is not None
    relay = asyncio.create_task(_relay(process.stdout, service.name, say, tail))
    try:
        return await process.wait()
    finally:
        await _end(process)
        with suppress(TimeoutError):  # what it started and left behind may still hold its output open
            await asyncio.wait_for(relay, timeout=1)


async def _start(service: Service, *, folder: Path, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(lifeline.__file__), str(os.getpid()), *service.command),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        pass_fds=service.descriptors,
        start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor alone
    )


async def _relay(output: asyncio.StreamReader, name: str, say: Say, tail: deque[str]) -> None:
    rest = b""
    while chunk := await output.read(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip()
            tail.append(text)
            say(f"{name:<6} | {text}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """The process has ended when this returns, and its whole group has."""
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), timeout=GRACE_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
