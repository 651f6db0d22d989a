"""Workers that need not wait for their imports: `python -m tests.system.warm ARGUMENT...` does them once.

Each line that it reads forks a process, which becomes `celery ARGUMENT...` in a process group of its own, and is
answered with that process's id. From there on it is the worker that the product starts.
"""

import os
import signal
import sys
from importlib import import_module

import django

USED_BY_A_WORKER = (
    "celery.bin.celery", "celery.apps.worker", "celery.concurrency.prefork", "celery.app.trace",
    "kombu.transport.redis", "sonder_site.celery", "sonder_site.urls", "memory.tasks", "memory.embedding.hashing",
)  # fmt: skip


def is_child() -> bool:
    """Returns True in each process that is forked, and False once the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever is killed is collected at once
    for _ in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            return True
        print(child, flush=True)
    return False


def become_worker(arguments: list[str]) -> None:
    from celery.__main__ import main

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["celery", *arguments]
    main()


if __name__ == "__main__":
    django.setup()
    for name in USED_BY_A_WORKER:
        import_module(name)
    if is_child():
        become_worker(sys.argv[1:])
