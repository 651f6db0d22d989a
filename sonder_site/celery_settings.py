"""Celery's settings, for the broker in files and for Redis.

The tables are the queue: a message only makes the work start sooner, and a sweep finds what no message announced. So
publishing is allowed to fail, and is never allowed to hold up a request.
"""
# kombu has no types.
# mypy: allow-untyped-calls

from pathlib import Path
from typing import Any

from kombu.entity import Exchange, Queue

QUEUES = ("credit", "distill", "maintenance")
PUBLISH_SECONDS = 1  # how long a request may wait for a broker that does not answer
SOFT_LIMIT_SECONDS, HARD_LIMIT_SECONDS = 300, 360  # the longest task is a language model's answer


def celery_settings(broker_url: str, var: Path) -> dict[str, Any]:
    """The Django settings ``CELERY_*``. Without `broker_url` messages are files in `var`/broker."""
    return _common() | (_redis(broker_url) if broker_url else _files(var / "broker"))


def _common() -> dict[str, Any]:
    return {
        "CELERY_TIMEZONE": "UTC",
        "CELERY_TASK_IGNORE_RESULT": True,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_TASK_QUEUES": [Queue(name, Exchange(name), routing_key=name) for name in QUEUES],
        "CELERY_TASK_DEFAULT_QUEUE": "maintenance",
        "CELERY_TASK_CREATE_MISSING_QUEUES": False,
        "CELERY_TASK_ROUTES": {
            "memory.tasks.credit_*": {"queue": "credit"},
            "memory.tasks.distill_*": {"queue": "distill"},
        },
        "CELERY_TASK_SOFT_TIME_LIMIT": SOFT_LIMIT_SECONDS,
        "CELERY_TASK_TIME_LIMIT": HARD_LIMIT_SECONDS,
        "CELERY_TASK_PUBLISH_RETRY": False,
        "CELERY_BROKER_CONNECTION_TIMEOUT": PUBLISH_SECONDS,
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
        "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": True,
        "CELERY_WORKER_REDIRECT_STDOUTS": False,
        "CELERY_WORKER_MAX_MEMORY_PER_CHILD": 350_000,  # KiB, prefork only
        "CELERY_BEAT_SCHEDULER": "django_celery_beat.schedulers:DatabaseScheduler",
    }


def _files(folder: Path) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": "filesystem://localhost",
        "CELERY_BROKER_TRANSPORT": "sonder_site.broker:Transport",
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            "data_folder_in": str(folder),
            "data_folder_out": str(folder),
            "control_folder": str(folder / "control"),
            "polling_interval": 0.2,  # seconds between looks into the folder
        },
        # Without a server there is nobody to talk to but the one worker, and its control messages would stay behind.
        "CELERY_WORKER_ENABLE_REMOTE_CONTROL": False,
    }


def _redis(url: str) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": url,
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            "socket_connect_timeout": PUBLISH_SECONDS,
            "socket_timeout": PUBLISH_SECONDS,
            "max_retries": 0,
            "visibility_timeout": 3 * HARD_LIMIT_SECONDS,  # seconds after which an unacknowledged message returns
        },
    }
