"""Stops the embedded PostgreSQL when its last user is gone, however that user went.

Every process that uses the server holds a shared flock on `VAR/postgres.users`. The kernel drops it with the process,
also after kill -9, so there is no count that can go stale. The keeper is a small process beside the server that waits
for the exclusive lock: it is granted exactly when nobody uses the server any more.

All starting and stopping happens under an exclusive flock on `VAR/postgres.start`. A new user takes its shared lock
there too, so nobody can join a server that is being stopped. The keeper waits for the users' lock without holding the
start lock (else the two would wait for each other), and asks again under it.

Run as `python -I keeper.py VAR PG_CTL`. Standard library only: it lives as long as the server and must stay small.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

DATA, USERS, START, KEEPER = "postgres", "postgres.users", "postgres.start", "postgres.keeper"
STOP_SECONDS = 60


def acquire(path: str, operation: int) -> int | None:
    """A descriptor that holds the flock `operation` on `path`; None if LOCK_NB was asked for and another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def starting_or_stopping(var: str) -> Iterator[None]:
    """Nobody else starts, joins or stops the server of `var` meanwhile."""
    descriptor = acquire(os.path.join(var, START), fcntl.LOCK_EX)
    assert descriptor is not None
    try:
        yield
    finally:
        os.close(descriptor)


def stop_if_unused(var: str, pg_ctl: str) -> bool:
    """Call under `starting_or_stopping`. True: no process uses the server of `var`, and it does not run any more."""
    users = acquire(os.path.join(var, USERS), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if users is None:
        return False
    try:
        if os.path.exists(os.path.join(var, DATA, "postmaster.pid")):
            stop(os.path.join(var, DATA), pg_ctl)
    finally:
        os.close(users)
    return True


def stop(data: str, pg_ctl: str) -> None:
    """Fast shutdown (open transactions are rolled back); an immediate one if that takes longer than a minute."""
    owner = os.stat(data) if os.geteuid() == 0 else None  # pg_ctl refuses to run as root
    for mode in ("fast", "immediate"):
        command = [pg_ctl, "stop", "-D", data, "-m", mode, "-w", "-t", str(STOP_SECONDS)]
        quiet = subprocess.DEVNULL
        done = subprocess.run(
            command,
            cwd="/",
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            user=owner and owner.st_uid,
            group=owner and owner.st_gid,
            extra_groups=owner and [],
            check=False,
        )
        if done.returncode == 0:
            return


def keep(var: str, pg_ctl: str) -> None:
    """Blocks until the server of `var` has no user, and stops it. Returns at once if it has a keeper already."""
    own = acquire(os.path.join(var, KEEPER), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if own is None:
        return
    if os.fork():
        os._exit(0)  # the child keeps the lock; the process that started this one has nobody to wait for
    os.setsid()
    while True:
        last_user_left = acquire(os.path.join(var, USERS), fcntl.LOCK_EX)
        assert last_user_left is not None
        os.close(last_user_left)
        with starting_or_stopping(var):
            if stop_if_unused(var, pg_ctl):
                os.close(own)  # while still under the start lock: the next server gets a keeper of its own
                return


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2])
