"""The Celery application: `celery -A sonder_site worker`, `celery -A sonder_site beat`; and announcing work to it."""

import os
import time
from typing import Any

import structlog
from celery import Celery
from celery.signals import setup_logging
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.exceptions import ChannelError, OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
app = Celery("sonder")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)  # binds the ids of the task and of its request to every line

MESSAGE_SECONDS = 3600  # a worker that comes back after an outage drops older messages: the sweep has done their work
PAUSE_SECONDS = 10.0  # between attempts while the broker is down, so that not every request waits for it

_log = structlog.get_logger(__name__)
_paused_until = 0.0  # on the monotonic clock


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Logging is Django's, in the worker too: Celery sets up its own only if nobody answers this signal."""


def publish(task: str, *arguments: str) -> bool:
    """Sends a message for the task of that name. True if the broker took it.

    A broker that is down fails nothing and costs at most a second in every ten: the table is the queue, and the sweep
    finds the row.
    """
    global _paused_until
    if time.monotonic() < _paused_until:
        return False
    try:
        app.send_task(task, args=arguments, expires=MESSAGE_SECONDS, ignore_result=True)
    except (OperationalError, ChannelError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_SECONDS
        _log.warning("broker_unreachable", error=str(error), pause_seconds=PAUSE_SECONDS)
        return False
    return True
