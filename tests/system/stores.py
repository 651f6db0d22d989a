"""A folder for a store of its own, and the processes that a test starts on it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sonder_site.embedded import keeper

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120


@contextmanager
def new_store() -> Iterator[Path]:
    """A store's folder that does not exist yet. Not below pytest's own folder: PostgreSQL, which does not run as root,
    could not enter that one. Afterwards nothing runs on the store and its folder is gone."""
    folder = Path(tempfile.mkdtemp(prefix="sonder-test-"))
    folder.chmod(0o755)
    var = folder / "var"
    try:
        yield var
    finally:
        for process in processes_of(var):
            if not is_postgres(process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        end_postgres(var)
        shutil.rmtree(folder)


def copy(store: Path, var: Path) -> None:
    """Makes a copy of a store on which nothing runs."""
    subprocess.run(["cp", "-a", store, var], check=True)


def end_postgres(var: Path) -> None:
    """Stops the PostgreSQL of a store that is thrown away: at once, without writing anything down first."""
    for process in processes_of(var):
        if is_postgres(process) and process.pid == postmaster(var):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGQUIT)
    wait_until(lambda: not running(var))


def environment(var: Path, **more: str) -> dict[str, str]:
    """What a command needs to work on the embedded store in `var`, whatever this test run itself works on."""
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")}
    return own | {"SONDER_VAR": str(var), "DJANGO_SETTINGS_MODULE": "sonder_site.settings"} | more


def manage(
    var: Path, *arguments: str, patience: float = PATIENCE_SECONDS, **more: str
) -> subprocess.CompletedProcess[str]:
    """A finished `manage.py` command on the store in `var`; `patience` is how long it may take, in seconds."""
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(var, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=patience, check=False,
    )  # fmt: skip


def running(var: Path) -> bool:
    """Whether the PostgreSQL of the store in `var` runs."""
    return any(is_postgres(process) for process in processes_of(var))


def is_postgres(process: psutil.Process) -> bool:
    """Whether it is one of PostgreSQL's; what has ended meanwhile is none."""
    try:
        return str(process.name()) == "postgres"
    except psutil.NoSuchProcess:
        return False


def postmaster(var: Path) -> int | None:
    """Process id of the store's PostgreSQL; None while there is none."""
    try:
        return int((var / keeper.DATA / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError):
        return None


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


def processes_of(var: Path) -> list[psutil.Process]:
    """Every living process that works on the store in `var`: by its command line, its folder or its environment."""
    found = []
    for process in psutil.process_iter():
        if process.pid != os.getpid() and _works_on(process, var):
            found.append(process)
    return found


def _works_on(process: psutil.Process, var: Path) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        named = any(str(var) in argument for argument in process.cmdline())
        return named or process.environ().get("SONDER_VAR") == str(var)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def wait_until(happened: Callable[[], object], patience: float = PATIENCE_SECONDS, every: float = 0.05) -> None:
    """Looks `every` so many seconds. Fails the test if it does not happen within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every)
