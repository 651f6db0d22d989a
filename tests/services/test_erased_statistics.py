"""PostgreSQL's statistics quote what stands in a table; what was erased from it is quoted no more."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Lesson
from memory.models.sql import execute, fetch
from memory.services.erasure import erase, statistics

pytestmark = pytest.mark.django_db


def quoted(word: str) -> bool:
    """Whether the statistics of the lessons hold it."""
    ((found,),) = fetch("SELECT count(*) FROM pg_stats s WHERE tablename = 'lesson' AND s::text LIKE %s", [f"%{word}%"])
    return bool(found)


def test_the_daily_job_makes_postgresql_forget_what_was_erased(
    lesson: Callable[..., Lesson], settings: Any, tmp_path: Any
) -> None:
    settings.SONDER_VAR = str(tmp_path)
    lesson("Drain the quokka tank before `pump.start()` is called.")
    gone = lesson("Tell the axolotl keeper to call `valve.close()` at noon.")
    execute("ANALYZE lesson")
    assert quoted("axolotl")
    erase("lesson", gone.pk, account_id=None, actor="system")
    assert quoted("axolotl"), "nothing but an ANALYZE changes statistics"
    assert statistics.renew(timezone.now()) > 0
    assert not quoted("axolotl")
    assert quoted("quokka")


def test_without_an_erasure_nothing_is_read(lesson: Callable[..., Lesson]) -> None:
    lesson("Drain the quokka tank before `pump.start()` is called.")
    assert statistics.renew(timezone.now()) == 0
