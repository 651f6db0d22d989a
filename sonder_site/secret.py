"""The installation's own secret: from the environment in production, else made once and kept in the store's folder."""

import os
import secrets
from pathlib import Path

from memory.conf import SettingError

#: Characters below which a secret can be guessed, or is what a crash or a full disk left of one (RFC 2104, 3, asks for
#: keys no shorter than the hash: 32 bytes).
SHORTEST = 32


def secret_key(var: Path) -> str:
    """The secret in `var/secret-key`, made on first use and readable by its owner only (mode 0600).

    Raises SettingError if the folder or the file cannot be used: without the secret of before, sessions end and
    tombstones cannot be read, so a damaged one is never replaced in silence.
    """
    path = var / "secret-key"
    try:
        if not path.exists():
            _make(path)
        secret = path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise _damaged(path, "holds bytes that no secret has") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SettingError(
            f"{path} cannot be read or made: {reason}. Set SONDER_VAR to a folder that can be written, or set "
            "SECRET_KEY."
        ) from None
    if len(secret.strip()) < SHORTEST:
        raise _damaged(path, "is empty or cut short")
    return secret


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    try:
        with draft.open("w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48))
            file.flush()
            os.fsync(file.fileno())  # a secret is signed with at once, and must outlive a crash
        os.link(draft, path)  # the first of two processes wins, and both read the same secret
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _damaged(path: Path, what: str) -> SettingError:
    return SettingError(
        f"{path} {what}. Restore it from a backup or set SECRET_KEY to the secret of before, because tombstones are "
        "signed with it; or delete the file, and a new secret is made."
    )
