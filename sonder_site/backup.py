"""Backing a store up, and bringing it back without what was erased meanwhile.

A backup is a folder: the database as `pg_dump` writes it, the ledger of erasures, the installation's secret, and a
manifest with the digest of each. PostgreSQL's own programs copy the database; what is ours is what they cannot know:
that a backup older than an erasure must not undo it.
"""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from memory.errors import Invalid
from memory.services.erasure import erase, ledger_path, sync_ledger
from memory.services.erasure.run import exists, read_ledger
from sonder_site.embedded import preflight

FORMAT: Final = 1
DUMP, LEDGER, SECRET, MANIFEST = "database.dump", "erasures.ndjson", "secret-key", "manifest.json"
#: Left out: what a restored store makes anew or must not repeat.
_TRANSIENT: Final = ("django_session", "idempotency_record")


@dataclass(frozen=True, kw_only=True)
class Backup:
    """What a folder holds."""

    format: int
    made_at: str  # ISO 8601, UTC
    files: dict[str, str]  # SHA-256 of each, hexadecimal


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a restoration did."""

    made_at: str  # of the backup
    erased_again: int  # erasures younger than the backup that were repeated


def back_up(parent: Path) -> Path:
    """Writes a backup into a new folder in `parent`, which appears whole or not at all; returns it.

    Raises Invalid if `parent` cannot be written or the database cannot be copied.
    """
    now = datetime.now(UTC)
    folder = parent / f"sonder-{now:%Y%m%dT%H%M%SZ}"
    draft = parent / f".{folder.name}.{os.getpid()}"
    try:
        draft.mkdir(mode=0o700, parents=True)
        _run(
            "pg_dump",
            "--format=custom",
            *(f"--exclude-table-data={name}" for name in _TRANSIENT),
            f"--file={draft / DUMP}",
        )
        sync_ledger()
        for path, name in ((ledger_path(), LEDGER), (_secret_path(), SECRET)):
            if path.exists():
                shutil.copyfile(path, draft / name)
        files = {path.name: _digest(path) for path in sorted(draft.iterdir())}
        made = Backup(format=FORMAT, made_at=now.isoformat(timespec="seconds"), files=files)
        (draft / MANIFEST).write_text(json.dumps(asdict(made), indent=1) + "\n", encoding="utf-8")
        draft.rename(folder)
    except OSError as error:
        raise Invalid.field(
            "folder", f"{parent} cannot be written: {(error.strerror or str(error)).lower()}."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def restore(folder: Path, ledgers: list[Path]) -> Restored:
    """Fills an empty database from a backup, brings it up to this release, and repeats every erasure made since.

    What was erased is known from this installation's ledger, the backup's own, and `ledgers`. Raises Invalid if the
    backup is damaged, the database is not empty, or the installation's secret is another one; nothing is changed then.
    """
    made = _checked(folder)
    if connection.introspection.table_names():
        raise Invalid.field(
            "database",
            "It holds tables already, and a restoration never overwrites. Name an empty one with DATABASE_URL, or "
            "another folder with SONDER_VAR.",
        )
    known = _erasures([folder / LEDGER, ledger_path(), *ledgers], datetime.fromisoformat(made.made_at))
    _take_secret(folder)
    connection.close()
    _run(
        "pg_restore", "--no-owner", "--no-privileges", "--single-transaction", f"--dbname={_name()}", str(folder / DUMP)
    )
    call_command("migrate", interactive=False, verbosity=0)
    again = 0
    for kind, subject in known:
        if exists(kind, subject):
            erase(kind, subject, account_id=None, actor="system")
            again += 1
    sync_ledger()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Restored(made_at=made.made_at, erased_again=again)


def _checked(folder: Path) -> Backup:
    """The manifest, if every file is what it says."""
    try:
        told: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        made = Backup(**told)
        wrong = [name for name, digest in made.files.items() if _digest(folder / Path(name).name) != digest]
    except (OSError, ValueError, TypeError) as error:
        raise Invalid.field(
            "folder", f"{folder} is no backup of this product, or not a whole one ({error})."
        ) from error
    if made.format != FORMAT or DUMP not in made.files:
        raise Invalid.field("folder", f"{folder} is a backup of a form that this release does not know.")
    if wrong:
        differ = "differs" if len(wrong) == 1 else "differ"
        raise Invalid.field("folder", f"{folder} is damaged: {', '.join(wrong)} {differ} from the manifest.")
    return made


def _erasures(paths: list[Path], made_at: datetime) -> list[tuple[str, UUID]]:
    """Each erasure once, oldest first. Invalid for a ledger that cannot be read: it must not be passed over."""
    found: dict[tuple[str, UUID], None] = {}
    for path in paths:
        try:
            for kind, subject, at in read_ledger(path):
                if kind != "demo" or at > made_at:  # a demonstration may be made anew after one was taken away
                    found.setdefault((kind, subject))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Invalid.field("ledger", f"{path} is no ledger of erasures that can be read ({error}).") from error
    return list(found)


def _take_secret(folder: Path) -> None:
    """Tombstones are signed with the secret, so the store that comes back needs the one of before.

    Where it is a setting, the operator keeps it, and `doctor` tells if it is another.
    """
    kept, own = folder / SECRET, _secret_path()
    if not (kept.exists() and own.exists()) or kept.read_bytes() == own.read_bytes():
        return
    own.rename(own.with_name(f"{SECRET}.before-restoring"))
    shutil.copyfile(kept, own)
    own.chmod(0o600)


def _secret_path() -> Path:
    return Path(settings.SONDER_VAR) / SECRET


def _name() -> str:
    return str(connection.get_connection_params()["dbname"])


def _run(program: str, *arguments: str) -> None:
    """One of PostgreSQL's programs on the store's database; Invalid with its own words if it fails."""
    connection.ensure_connection()
    params = connection.get_connection_params()
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    own = {name: str(params[key]) for key, name in names.items() if params.get(key)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | own
    done = subprocess.run([_program(program), *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Invalid.field("database", f"{program} failed: {done.stderr.strip()[-500:]}")


def _program(name: str) -> str:
    """The embedded server's own, which fits it; for another server the one that its operator installed."""
    embedded = connection.settings_dict["ENGINE"] == "sonder_site.embedded"
    found = None if embedded else shutil.which(name)
    return found or str(preflight.programs() / name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
