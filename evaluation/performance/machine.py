"""What the numbers were measured on, as far as it matters to them and names nobody's machine."""

import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil
from django.conf import settings

from memory.models.sql import fetch

WRITES: Final = 200
PAGE: Final = 8192  # bytes; a commit writes about that much


@dataclass(frozen=True, kw_only=True)
class Machine:
    cores: int
    memory_gb: float
    system: str
    python: str
    postgresql: str
    pgvector: str
    shared_buffers: str
    fdatasync_ms: float  # median, in the store's own folder: what each durable commit waits for


def describe() -> Machine:
    ((postgresql, pgvector, shared_buffers),) = fetch(
        "SELECT split_part(current_setting('server_version'), ' ', 1), default_version, "
        "current_setting('shared_buffers') FROM pg_available_extensions WHERE name = 'vector'"
    )
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        postgresql=postgresql,
        pgvector=pgvector,
        shared_buffers=shared_buffers,
        fdatasync_ms=fdatasync_ms(Path(settings.SONDER_VAR)),
    )


def fdatasync_ms(folder: Path) -> float:
    """The median time to make a page durable."""
    sync = getattr(os, "fdatasync", os.fsync)
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(WRITES):
            os.write(file.fileno(), bytes(PAGE))
            begin = time.perf_counter()
            sync(file.fileno())
            taken.append(time.perf_counter() - begin)
    return float(np.median(taken)) * 1000
