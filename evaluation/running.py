"""The whole product, started on a store of its own: a folder, an environment, and `manage.py up`.

For measurements and for tests. Whatever this process itself works on, what is started here works on the embedded
PostgreSQL in the folder, and neither outlives the measurement.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil

from sonder_site import lifeline
from sonder_site.embedded import keeper

ROOT: Final = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS: Final = 120
READY: Final = re.compile(r"^Sonder is ready: (http://127\.0\.0\.1:\d+)/ ", re.MULTILINE)
SERVICES: Final = ("sonder_site.web", "worker", "beat")  # by a word of the command line


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
    subprocess.run(["/bin/cp", "-a", store, var], check=True)


def end_postgres(var: Path) -> None:
    """Stops the PostgreSQL of a store that is thrown away: at once, without writing anything down first."""
    for process in processes_of(var):
        if is_postgres(process) and process.pid == postmaster(var):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGQUIT)
    wait_until(lambda: not running(var))


def environment(var: Path, **more: str) -> dict[str, str]:
    """What a command needs to work on the embedded store in `var`, whatever this run itself works on."""
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")}
    return own | {"SONDER_VAR": str(var), "DJANGO_SETTINGS_MODULE": "sonder_site.settings"} | more


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
    """Looks `every` so many seconds. Raises TimeoutError if it does not happen within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not happen within {patience:.0f} seconds")
        time.sleep(every)


class Up:
    """A running `manage.py up`."""

    def __init__(self, process: subprocess.Popen[str], log: Path, var: Path, environment: dict[str, str]) -> None:
        self.process, self.log, self.var, self.environment = process, log, var, environment

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def address(self) -> str:
        found = READY.search(self.output)
        assert found
        return found[1]

    def services(self) -> dict[str, psutil.Process]:
        """The living processes, by their word of SERVICES."""
        found: dict[str, psutil.Process] = {}
        for child in psutil.Process(self.process.pid).children():
            words = child.cmdline()
            found |= {name: child for name in SERVICES if name in words}
        return found

    def get(self, path: str) -> int:
        """The status of the answer."""
        connection = HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        with closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status

    def wait_ready(self) -> "Up":
        """Raises RuntimeError with what it said if it ends before."""
        wait_until(lambda: READY.search(self.output) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise RuntimeError(self.output)
        return self


@contextmanager
def up(var: Path, **more: str) -> Iterator[Up]:
    """`manage.py up` on the store in `var`, ready; `more` is added to its environment."""
    log = var.parent / "output"
    whole = [sys.executable, "-I", str(lifeline.__file__), str(os.getpid())]
    command = [*whole, sys.executable, "manage.py", "up", "--port", "0"]
    own = environment(var, **more)
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True
        ) as process,
    ):
        try:
            yield Up(process, log, var, own).wait_ready()
        finally:
            process.kill()
