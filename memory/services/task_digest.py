"""When two tasks are the same task: their normalised texts are equal."""

import hashlib

from memory.rules.text import EmptyText, digest


def task_digest(task: str) -> str:
    """64 hex digits. A task of punctuation alone has no normal form and is compared as it stands."""
    try:
        return digest(task)
    except EmptyText:
        return hashlib.sha256(task.encode()).hexdigest()
