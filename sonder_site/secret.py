"""The installation's own secret: from the environment in production, else made once and kept in the store's folder."""

import os
import secrets
from pathlib import Path


def secret_key(var: Path) -> str:
    """The secret in `var/secret-key`, made on first use and readable by its owner only (mode 0600)."""
    path = var / "secret-key"
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        var.mkdir(parents=True, exist_ok=True)
    draft = var / f".secret-key.{os.getpid()}"
    draft.write_text(secrets.token_urlsafe(48), encoding="ascii")
    draft.chmod(0o600)
    try:
        os.link(draft, path)  # the first of two processes wins, and both read the same secret
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii")
