"""What every lease has: who holds it, in words for whoever looks into a stuck one, and what is left when it ends."""

import os
import socket
from typing import Final

from memory.models.leased import CLAIM_COLUMNS

UNCLAIMED: Final = dict.fromkeys(CLAIM_COLUMNS)
MAX_OWNER: Final = 200


def owner(task: str) -> str:
    """Host, process and task that hold a claim."""
    return f"{socket.gethostname()}:{os.getpid()}:{task}"[:MAX_OWNER]
