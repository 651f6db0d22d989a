"""`manage.py up`: everything that Sonder needs on one machine, in one command."""

import asyncio
import errno
import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connection

from memory.services import setup
from sonder_site import probe
from sonder_site.embedded import keeper, preflight, server
from sonder_site.embedded.errors import EmbeddedError
from sonder_site.supervisor import Service, ServiceFailed, supervise

HOST = "127.0.0.1"
WORKER_THREADS = 4  # tasks wait for the database or a language model; threads share one copy of the embedding model
DATABASE_CHECK_SECONDS = 5
READY_CHECK_SECONDS = 0.2
FIRST_ANSWER_SECONDS = 10  # after which a web server that answers badly is told


class Command(BaseCommand):
    help = "Starts everything on this machine: database, web server, worker and schedule. Ctrl-C stops it."
    requires_system_checks = []  # they need a migrated database; this command makes one, and checks then

    def add_arguments(self, parser: CommandParser) -> None:
        port = os.environ.get("PORT", "8000")
        parser.add_argument("--port", default=port, type=int, help="TCP port of the web server; 0 takes a free one")
        parser.add_argument("--demo", action="store_true", help="load the demo store")

    def handle(self, *, port: int, demo: bool, **options: Any) -> None:
        var = Path(settings.SONDER_VAR)
        try:
            with _only_one(var), _listening(port) as listener:
                self._prepare(demo)
                asyncio.run(self._serve(listener))
        except (EmbeddedError, ServiceFailed) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted before it was ready.", returncode=130) from None
        finally:
            server.release(var)
        self._say("Stopped.")

    def _prepare(self, demo: bool) -> None:
        self._say("Preparing the database.")
        try:
            connection.ensure_connection()
        except OperationalError as error:
            raise CommandError(f"The database cannot be used. {error}") from error
        try:
            call_command("migrate", interactive=False, verbosity=0)
            for line in (*_welcome(setup.first_start()), setup.open_space()):
                if line:
                    self._say(line)
            if demo:
                call_command("seed_demo")
            self.check(databases=["default"])
        finally:
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]  # of Django's PostgreSQL backends

    async def _serve(self, listener: socket.socket) -> None:
        await supervise(
            _services(listener.fileno()),
            folder=settings.BASE_DIR,
            environment=_environment(),
            say=self._say,
            alongside=[self._announce(listener.getsockname()[1]), self._watch_database()],
        )

    async def _announce(self, port: int) -> None:
        address = f"http://{HOST}:{port}/healthz"
        started, told = asyncio.get_running_loop().time(), False
        while (status := await asyncio.to_thread(probe.status, address, settings.ALLOWED_HOSTS)) != HTTPStatus.OK:
            if status and not told and asyncio.get_running_loop().time() - started > FIRST_ANSWER_SECONDS:
                self._say(f"The web server answers /healthz with HTTP {status} instead of 200. Its log has the reason.")
                told = True
            await asyncio.sleep(READY_CHECK_SECONDS)
        self._say(f"Sonder is ready: http://{HOST}:{port}/ (Ctrl-C stops it)")

    async def _watch_database(self) -> None:
        """Starts the embedded server again after a crash; connections come back by themselves."""
        while settings.DATABASES["default"]["ENGINE"] == "sonder_site.embedded":
            await asyncio.sleep(DATABASE_CHECK_SECONDS)
            try:
                await asyncio.to_thread(server.ensure_running, Path(settings.SONDER_VAR))
            except EmbeddedError as error:
                self._say(str(error))

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _welcome(first: setup.FirstStart | None) -> list[str]:
    if first is None:
        return []
    return [
        "This store is new. Keep these, they are shown only now:",
        f"  account                    {first.account}",
        f"  key where people judge     {first.caller_key}",
        f"  key where programs judge   {first.machine_key}",
        f"  login to review            {first.username} / {first.password}",
    ]


@contextmanager
def _only_one(var: Path) -> Iterator[None]:
    """Holds the store for this `up`; refuses if another one has it."""
    preflight.prepare_folder(var)
    path = var / "up.lock"
    try:
        lock = keeper.acquire(str(path), fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock is None:
            raise CommandError(
                f"Sonder runs already on the store in {var} (process {path.read_text().strip()}). Stop that one first "
                "(Ctrl-C, or kill with its number), or set SONDER_VAR to another folder for a second store."
            )
        path.write_text(f"{os.getpid()}\n")
    except OSError as error:
        raise preflight.unusable(var, error) from error
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """The web server's socket, open before anything starts: a port in use is known at once."""
    if not 0 <= port < 2**16:
        raise CommandError(f"{port} is no port; choose one from 1024 to 65535 with --port or PORT.")
    with socket.socket(socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError as error:
            reason = "in use by another program" if error.errno == errno.EADDRINUSE else "not to be had"
            raise CommandError(
                f"Port {port} is {reason} ({error.strerror}). Stop what uses it, or choose another one: "
                "`manage.py up --port 8001`, or PORT=8001."
            ) from error
        yield listener


def _services(listener: int) -> list[Service]:
    python = sys.executable
    # Who runs the whole of it as root in a container knows, and a worker that reads only JSON is no risk there.
    celery = (python, "-W", "ignore:You're running the worker", "-m", "celery", "--quiet", "-A", "sonder_site")
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")  # there is no other worker
    return [
        Service(name="web", command=(python, "-m", "sonder_site.web", str(listener)), descriptors=(listener,)),
        Service(
            name="worker", command=(*celery, "worker", "--pool=threads", f"--concurrency={WORKER_THREADS}", *alone)
        ),
        Service(name="beat", command=(*celery, "beat")),
    ]


def _environment() -> dict[str, str]:
    # One thread of linear algebra per call: these processes run calls side by side, and a second thread costs them
    # more in waking up than it computes.
    defaults = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    own = {"DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE, "SONDER_VAR": settings.SONDER_VAR}
    return defaults | dict(os.environ) | own | {"PYTHONUNBUFFERED": "1"}
