"""A folder for a store of its own, and the processes that a test starts on it."""

import subprocess
import sys
from pathlib import Path

import psutil

from evaluation.running import (
    PATIENCE_SECONDS,
    ROOT,
    copy,
    end_postgres,
    environment,
    is_postgres,
    new_store,
    postmaster,
    processes_of,
    running,
    wait_until,
)

__all__ = (
    "PATIENCE_SECONDS", "ROOT", "copy", "end_postgres", "ended", "environment", "is_postgres", "kill", "manage",
    "new_store", "postmaster", "processes_of", "running", "wait_until",
)  # fmt: skip


def manage(
    var: Path, *arguments: str, patience: float = PATIENCE_SECONDS, **more: str
) -> subprocess.CompletedProcess[str]:
    """A finished `manage.py` command on the store in `var`; `patience` is how long it may take, in seconds."""
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(var, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=patience, check=False,
    )  # fmt: skip


def kill(number: int | None) -> None:
    """As kill -9, and waits for the effect."""
    assert number
    process = psutil.Process(number)
    process.kill()
    wait_until(lambda: ended(process))


def ended(process: psutil.Process) -> bool:
    """Whether nothing of a process is left but its entry in the table."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
