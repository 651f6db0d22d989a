"""Runs a program that the kernel kills when its parent is gone: `python -I lifeline.py PARENT PROGRAM ARGUMENT…`.

The parent may be killed itself and then has no chance to stop anything. Linux only; elsewhere the program just runs.
Setting this between fork and exec in the parent would not be safe with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)


def main(parent: int, command: list[str]) -> None:
    """Becomes `command`. Ends at once if `parent` (process id) is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
