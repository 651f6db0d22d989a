"""One PostgreSQL server shared by every process that works on the same store."""

import atexit
import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from sonder_site.embedded import cluster, keeper, preflight
from sonder_site.embedded.cluster import Address
from sonder_site.embedded.errors import EmbeddedError


@dataclass(frozen=True, kw_only=True)
class _Use:
    """This process's claim on a server."""

    descriptor: int  # holds the shared flock on the store's users file
    address: Address


_mutex = threading.Lock()
_uses: dict[Path, _Use] = {}  # by the store's folder


def ensure_running(var: Path) -> Address:
    """Where the server of the store in `var` listens; it is made and started first if it has to be.

    From here on this process counts as a user of the server, until `release` or its end. Safe to call from any thread
    or process at any time, also after the server was killed. Raises EmbeddedError with a sentence that says what to do.
    """
    with _mutex:
        use = _uses.get(var)
        if use and cluster.listens(use.address):
            return use.address
        preflight.prepare_folder(var)
        try:
            with keeper.starting_or_stopping(str(var)):
                return _join(var)
        except OSError as error:
            raise preflight.unusable(var, error) from error


def release(var: Path) -> None:
    """This process does not use the server of `var` any more: stops it, unless another process does."""
    with _mutex:
        use = _uses.pop(var, None)
        if use is None:
            return
        os.close(use.descriptor)
        if (var / keeper.START).exists():
            with keeper.starting_or_stopping(str(var)):
                keeper.stop_if_unused(str(var), str(preflight.programs() / "pg_ctl"))


def _join(var: Path) -> Address:
    """Call under the start lock. The claim comes first: nobody may stop the server between its start and our use."""
    place = cluster.open_cluster(var)
    if var not in _uses:
        descriptor = keeper.acquire(str(var / keeper.USERS), fcntl.LOCK_SH)
        assert descriptor is not None
        _uses[var] = _Use(descriptor=descriptor, address=place.address)
    try:
        _ensure_keeper(var, place.pg_ctl)  # before the start: this process may be killed in the middle of it
        cluster.start(place)
    except BaseException:
        os.close(_uses.pop(var).descriptor)
        raise
    return place.address


def _ensure_keeper(var: Path, pg_ctl: str) -> None:
    free = keeper.acquire(str(var / keeper.KEEPER), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if free is None:
        return
    os.close(free)
    # Isolated mode: the keeper must not import what lies in the current folder. It goes to the background by itself.
    command = [sys.executable, "-I", str(keeper.__file__), str(var), pg_ctl]
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(command, cwd="/", stdin=quiet, stdout=quiet, stderr=quiet, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedError(f"The process that stops PostgreSQL after use could not be started: {error}.") from error


def _release_all() -> None:
    for var in tuple(_uses):
        release(var)


def _after_fork() -> None:
    """A forked child starts without a claim on the server and makes its own when it connects.

    The descriptor it inherited is its parent's lock: kept open, it would let the parent stop the server under the
    child, or keep the server running after the parent.
    """
    global _mutex
    _mutex = threading.Lock()
    while _uses:
        os.close(_uses.popitem()[1].descriptor)


atexit.register(_release_all)
os.register_at_fork(after_in_child=_after_fork)
