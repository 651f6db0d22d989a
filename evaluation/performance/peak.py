"""`python -m evaluation.performance.peak plan` makes a plan of near-duplicates over BENCH_DATABASE in a process of its
own and prints the most memory that it held, in MB; with `idle` the process does everything but that.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

import django

STATUS: Final = Path("/proc/self/status")


def of(what: str, database: str) -> float:
    """The peak memory in MB of a process that makes a plan, or that is idle."""
    command = [sys.executable, "-m", "evaluation.performance.peak", what]
    environment = {**os.environ, "BENCH_DATABASE": database}
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def peak_mb() -> float:
    """The most memory that this process has held, in MB of 10^6 bytes.

    Linux tells it of the program that runs; what `getrusage` says there includes its parent's at the time of the fork.
    """
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(what: str) -> None:
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "evaluation.performance.settings"
    django.setup()
    from memory.services import pruning

    where = pruning.scope(None)
    if what == "plan":
        *_, last = pruning.making(where, complete=True)
        assert last.plan is not None, "the last step has the plan"
    sys.stdout.write(f"{peak_mb()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
