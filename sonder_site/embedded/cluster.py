"""One PostgreSQL cluster in one folder: makes it, starts it, and says in a sentence why it did not work."""

import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

from sonder_site.embedded import keeper, preflight
from sonder_site.embedded.errors import EmbeddedError

DATABASE, USER, PORT = "sonder", "sonder", 5432
ROOT_RUNS_AS = "pgserver"
START_SECONDS = 60  # after a crash the write-ahead log is replayed first
LOG_BYTES = 10 * 2**20
SOCKET_PATH_BYTES = 100  # sun_path holds 108 bytes on Linux and 104 elsewhere, with its closing NUL

# Memory for a laptop. The log never repeats statements or rows: it would keep text that was erased from the store.
CONFIGURATION = """\
# Written by Sonder at every start; own settings belong into postgresql.conf or ALTER SYSTEM.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 200
shared_buffers = 256MB
work_mem = 8MB
maintenance_work_mem = 128MB
max_wal_size = 512MB
jit = off
fsync = on
synchronous_commit = on
autovacuum = on
timezone = 'UTC'
log_timezone = 'UTC'
log_checkpoints = off
log_min_error_statement = panic
log_error_verbosity = terse
"""


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a running server listens."""

    host: str  # folder of the unix socket, absolute
    port: int  # number in the socket's file name
    user: str  # superuser of the embedded cluster; only this machine's user reaches the socket


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A data directory and what serves it."""

    data: Path  # PostgreSQL's data directory
    programs: Path  # folder of pg_ctl and initdb
    owner: pwd.struct_passwd  # the system user PostgreSQL runs as

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def pg_ctl(self) -> str:
        return str(self.programs / "pg_ctl")

    @property
    def sockets(self) -> Path:
        """Folder of the socket: the data directory, or a private one in /tmp if that path is too long for a socket."""
        path = str(self.data)
        if len(os.fsencode(f"{path}/.s.PGSQL.{PORT}")) <= SOCKET_PATH_BYTES and not set(path) & set(",\"'\\"):
            return self.data
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return Path(f"/tmp/sonder-{digest}")  # noqa: S108 - made below with mode 0700 and its owner checked

    @property
    def address(self) -> Address:
        return Address(host=str(self.sockets), port=PORT, user=USER)


def open_cluster(var: Path) -> Cluster:
    """The cluster of the store in `var`, made if it does not exist. Raises EmbeddedError before anything is changed."""
    data = var / keeper.DATA
    cluster = Cluster(data=data, programs=preflight.programs(), owner=_owner())
    if os.geteuid() == 0:
        preflight.check_reachable(var, cluster.owner)
        preflight.check_reachable(cluster.programs, cluster.owner)
    if not preflight.check_data(data, cluster.owner.pw_uid):
        preflight.check_space(var, preflight.NEW_STORE_BYTES)
        _make(cluster)
    return cluster


def start(cluster: Cluster) -> None:
    """Returns when the server answers and has the product's database."""
    deadline = time.monotonic() + START_SECONDS
    while not listens(cluster.address):
        _forget_dead_server(cluster)
        _prepare_start(cluster)
        # A killed server's last backends may hold its shared memory for a moment: the one failure worth another try.
        started = _run(cluster, "pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-l", str(cluster.log))
        if started.returncode and not (_held_by_old_backends(cluster) and time.monotonic() < deadline):
            raise _failure(cluster, "did not start", _tail(cluster.log) or started.stdout)
        time.sleep(0.2 if started.returncode else 0)
    _make_database(cluster, deadline)


def _owner() -> pwd.struct_passwd:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    with suppress(KeyError):
        return pwd.getpwnam(ROOT_RUNS_AS)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ROOT_RUNS_AS]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and the user {ROOT_RUNS_AS} for it could not be made ({error}). "
            f"Make it ({' '.join(command)}), or run as an ordinary user, or set DATABASE_URL."
        ) from error
    return pwd.getpwnam(ROOT_RUNS_AS)


def _make(cluster: Cluster) -> None:
    """Makes the cluster beside its place and moves it there, so that an interrupted attempt leaves no half of one."""
    draft = cluster.data.with_name(f"{keeper.DATA}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    _give(draft, cluster.owner)
    made = _run(
        Cluster(data=draft, programs=cluster.programs, owner=cluster.owner),
        *("initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8"),
        *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),  # the same on every machine
    )
    if made.returncode:
        shutil.rmtree(draft, ignore_errors=True)
        raise _failure(cluster, "could not make its data directory", made.stdout)
    with (draft / "postgresql.conf").open("a") as configuration:
        configuration.write(f"\ninclude '{preflight.MARKER}'\n")
    (draft / preflight.MARKER).touch()
    draft.rename(cluster.data)


def _prepare_start(cluster: Cluster) -> None:
    preflight.check_space(cluster.data, preflight.OLD_STORE_BYTES)
    if cluster.log.exists() and cluster.log.stat().st_size > LOG_BYTES:
        cluster.log.replace(cluster.log.with_suffix(".log.1"))
    sockets = cluster.sockets
    if sockets != cluster.data:
        with suppress(FileExistsError):
            sockets.mkdir(mode=0o700)
            _give(sockets, cluster.owner)
        if sockets.is_symlink() or sockets.stat().st_uid != cluster.owner.pw_uid:
            raise EmbeddedError(f"{sockets} belongs to somebody else. Remove it, or set SONDER_VAR to a shorter path.")
    marker = cluster.data / preflight.MARKER
    marker.write_text(CONFIGURATION.format(port=PORT, sockets=sockets))
    marker.chmod(0o600)
    _give(marker, cluster.owner)


def _give(path: Path, owner: pwd.struct_passwd) -> None:
    if os.geteuid() == 0:
        os.chown(path, owner.pw_uid, owner.pw_gid)


def listens(address: Address) -> bool:
    """Whether a server, be it still starting, accepts connections at `address`. Costs some 50 microseconds."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(f"{address.host}/.s.PGSQL.{address.port}") == 0


def _forget_dead_server(cluster: Cluster) -> None:
    """Removes the lock files of a killed server whose number belongs to a stranger by now, or to its own remains that
    nobody has collected (a container without an init): PostgreSQL would take either for a running server."""
    for file in (cluster.data / "postmaster.pid", cluster.sockets / f".s.PGSQL.{PORT}.lock"):
        with suppress(FileNotFoundError, psutil.NoSuchProcess, psutil.AccessDenied):
            process = psutil.Process(int(file.read_text().splitlines()[0]))
            dead = process.status() == psutil.STATUS_ZOMBIE
            if dead or process.name() != "postgres" or process.cwd() != str(cluster.data.resolve()):
                file.unlink()


def _held_by_old_backends(cluster: Cluster) -> bool:
    return "is still in use" in _tail(cluster.log)


def _make_database(cluster: Cluster, deadline: float) -> None:
    """Makes the product's database if it is missing; waits while the server starts up, recovers or shuts down."""
    address = cluster.address
    place: dict[str, Any] = {"host": address.host, "port": address.port, "user": address.user}
    while True:
        try:
            with psycopg.connect(**place, dbname="postgres", autocommit=True, connect_timeout=10) as connection:
                known = "SELECT FROM pg_database WHERE datname = %s"
                if connection.execute(known, [DATABASE]).fetchone() is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
                return
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise _failure(cluster, "does not answer", f"{error}\n{_tail(cluster.log)}") from error
            time.sleep(0.1)


def _run(cluster: Cluster, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a PostgreSQL program as the cluster's owner. The output goes through a file: a server that inherited a pipe
    would hold it open."""
    owner = cluster.owner if os.geteuid() == 0 else None
    command = [str(cluster.programs / program), *arguments, "-D", str(cluster.data)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(
                command,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=owner and owner.pw_uid,
                group=owner and owner.pw_gid,
                extra_groups=owner and [],
                check=False,
            )
        except OSError as error:
            raise _failure(cluster, "cannot be run", f"{command[0]}: {error.strerror}") from error
        output.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, stdout=output.read())


def _tail(log: Path, lines: int = 8) -> str:
    try:
        return "\n".join(log.read_text(errors="replace")[-4000:].splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _failure(cluster: Cluster, what: str, output: str) -> EmbeddedError:
    if "No space left on device" in output:
        return preflight.disk_full(cluster.data)
    return EmbeddedError(f"The embedded PostgreSQL in {cluster.data} {what}. It said:\n{output.strip()}")
