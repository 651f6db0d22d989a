"""PostgreSQL's own statistics quote values of the columns that they are about, also of rows that are gone."""

from datetime import datetime, timedelta
from typing import Final

from django.apps import apps

from memory.models import ErasureRecord
from memory.models.sql import execute

LATELY: Final = timedelta(days=2)  # more than the time between two runs of the daily job


def renew(now: datetime) -> int:
    """ANALYZE of every table that something was erased from lately, so that it is quoted no more; returns how many."""
    ours = {model._meta.db_table for model in apps.get_app_config("memory").get_models()}
    records = ErasureRecord.objects.filter(created_at__gte=now - LATELY)
    tables = sorted({table for counts in records.values_list("counts", flat=True) for table in counts} & ours)
    for table in tables:
        execute(f'ANALYZE "{table}"')
    return len(tables)
