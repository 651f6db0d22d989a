"""Is the process up, and can it serve?"""

from collections.abc import Callable

import structlog
from celery import current_app
from django.db import Error as DatabaseFailure
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from kombu.exceptions import OperationalError

from memory.api.views.plain import read_only
from memory.embedding.active import provider, usable_space
from memory.errors import EmbeddingUnavailable

log = structlog.get_logger(__name__)


@never_cache
@read_only
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(plan)} migrations are not applied. Run 'manage.py migrate'." if plan else ""


def _broker() -> str:
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=1)
    except (OperationalError, OSError):
        return "The broker does not answer. Outcomes are kept, and credited when it returns."
    return ""


def _embedding() -> str:
    try:
        usable_space()
        provider().check()  # asks the model: a remembered answer would outlive it
    except EmbeddingUnavailable as refusal:
        return refusal.detail
    return ""


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "embedding": _embedding,
}


@never_cache
@read_only
def readyz(request: HttpRequest) -> JsonResponse:
    """Database, migrations, broker and embedding model; 503 names what failed and what to do."""
    parts: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            parts[name] = check() or "ok"
        except DatabaseFailure as error:
            log.warning("database_unavailable", check=name, error=type(error).__name__)
            parts[name] = "The database does not answer."
    ready = all(word == "ok" for word in parts.values())
    return JsonResponse({"status": "ok" if ready else "unavailable", "checks": parts}, status=200 if ready else 503)
