"""What must be true before the first request: pgvector is there, the thresholds are ordered, the model is the space's.

Checks that need the database run with `check --database default` and in `up`, `doctor` and `/readyz`.
"""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DatabaseError, connections

from memory.embedding.active import usable_space
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace

MIN_PGVECTOR = (0, 8)  # iterative index scans


def database_checks(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """pgvector's version, the thresholds of the active space, and whether the configured model is its model."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
                row = cursor.fetchone()
                cursor.execute("SELECT to_regclass('embedding_space') IS NOT NULL")
                migrated = cursor.fetchone()[0]
        except DatabaseError as error:
            return [Error(f"The database does not answer: {error}", id="memory.E001")]
        found += _pgvector(row)
        if migrated:
            found += _space()
    return found


def _pgvector(row: tuple[str] | None) -> list[CheckMessage]:
    if row is None:
        return []  # the first migration creates the extension, and says so if it cannot
    version = tuple(int(part) for part in row[0].split(".")[:2])
    if version >= MIN_PGVECTOR:
        return []
    return [
        Error(
            f"pgvector is {row[0]}; retrieval needs 0.8 or newer. Run ALTER EXTENSION vector UPDATE.", id="memory.E002"
        )
    ]


def _space() -> list[CheckMessage]:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    if space is None:
        return []
    found: list[CheckMessage] = []
    if not space.min_similarity <= space.uncorroborated_min_similarity:
        found.append(
            Error(
                f"{space}: min_similarity {space.min_similarity} is above uncorroborated_min_similarity "
                f"{space.uncorroborated_min_similarity}. Correct the space in the admin.",
                id="memory.E003",
            )
        )
    try:
        usable_space()
    except EmbeddingUnavailable as refusal:
        found.append(checks.Warning(f"{refusal.detail} Until then retrieval uses words alone.", id="memory.W001"))
    return found


def install() -> None:
    """Registers the checks with Django."""
    register(Tags.database)(database_checks)
