"""Programs that a test starts for itself: `manage.py up`, and a Redis that can be killed, held and started again."""

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis

from tests.system.stores import ROOT, environment, wait_until

READY = re.compile(r"^Sonder is ready: (http://127\.0\.0\.1:\d+)/ ", re.MULTILINE)


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
        """The living processes of `web`, `worker` and `beat`."""
        found: dict[str, psutil.Process] = {}
        for child in psutil.Process(self.process.pid).children():
            words = child.cmdline()
            found |= {name: child for name in ("sonder_site.web", "worker", "beat") if name in words}
        return found

    def get(self, path: str) -> int:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return int(answer.status)

    def wait_ready(self) -> "Up":
        wait_until(lambda: READY.search(self.output) or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        return self


@contextmanager
def up(var: Path, **more: str) -> Iterator[Up]:
    """`manage.py up` on the store in `var`, ready; `more` is added to its environment."""
    log = var.parent / "output"
    command = [sys.executable, "manage.py", "up", "--port", "0"]
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


class Redis:
    """A Redis of the test's own, which keeps its queues on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program is not None, "install redis-server"
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "appendonly": "yes", "save": ""}
        command = [program, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(self.answers)

    def kill(self) -> None:
        """As kill -9: connections break, and new ones are refused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hold(self) -> None:
        """It takes connections, and answers nothing until it goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def answers(self) -> bool:
        try:
            with redis.Redis(port=self.port) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


@contextmanager
def redis_server() -> Iterator[Redis]:
    """A Redis that runs; at the end it does not, and its folder is gone."""
    folder = Path(tempfile.mkdtemp(prefix="sonder-redis-"))
    own = Redis(folder)
    try:
        own.start()
        yield own
    finally:
        own.kill()
        shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
