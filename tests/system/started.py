"""Programs that a test starts for itself: `manage.py up`, and a Redis that can be killed, held and started again."""

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from evaluation.running import READY, Up, up, wait_until

__all__ = ("READY", "Redis", "Up", "free_port", "redis_server", "up")


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
