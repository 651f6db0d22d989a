"""What `doctor` finds wrong and can be computed again, `doctor --repair` puts right, and moves no state by it."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.models import EmbeddingSpace, Lesson, LessonEmbedding, LessonStanding, LessonTombstone, Outcome
from memory.models.sql import execute
from memory.services.repair import REPAIRS
from memory.services.space import index_name
from tests.conftest import Agent
from tests.http.test_quarantine_walk import TASK, TEXT, report, start

pytestmark = pytest.mark.django_db(transaction=True)


def doctor(*options: str) -> dict[str, Any]:
    """What it says; an unclean store makes it fail."""
    out = StringIO()
    with suppress(CommandError):
        call_command("doctor", "--json", *options, stdout=out)
    return dict(json.loads(out.getvalue()))


def wrong(told: dict[str, Any]) -> list[str]:
    return [check["check"] for check in told["checks"] if not check["ok"]]


def drop_an_index() -> None:
    execute(f"DROP INDEX {index_name(EmbeddingSpace.objects.get(is_active=True), 'active')}")


DAMAGE: dict[str, Callable[[], object]] = {
    "vector indexes": drop_an_index,
    "vectors": lambda: LessonEmbedding.objects.all().delete(),
    "search columns": lambda: execute("UPDATE lesson SET identifiers = ''"),
    "credit": lambda: Outcome.objects.update(credited_at=None),
    "sums": lambda: execute("DELETE FROM lesson_sum"),
    "standings": lambda: LessonStanding.objects.all().delete(),
    "tombstone vectors": lambda: LessonTombstone.objects.update(embedding=None, space=None),
}


@pytest.fixture
def quarantined(agent: Agent, lesson: Callable[..., Lesson]) -> Lesson:
    """A store with one lesson that has evidence."""
    bad = lesson(TEXT.replace("database call", "`psycopg.connect()`"))
    for attempt in range(5):
        report(agent, start(agent, TASK.format(attempt))["id"], "failed")
    bad.refresh_from_db()
    assert bad.state == "quarantined"
    return bad


def test_everything_that_can_be_repaired_is_damaged_here() -> None:
    assert DAMAGE.keys() == REPAIRS.keys()


@pytest.mark.parametrize("check", DAMAGE)
def test_damage_is_found_and_repaired(quarantined: Lesson, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.doctor.LATE", timedelta(0))  # no outcome may wait
    assert doctor()["clean"]
    since = quarantined.lessonstanding.quarantined_at
    DAMAGE[check]()
    assert wrong(doctor()) == [check], "and without --repair nothing is changed"
    assert wrong(doctor()) == [check]
    assert wrong(doctor("--repair")) == []
    quarantined.refresh_from_db()
    assert quarantined.state == "quarantined"
    entered = LessonStanding.objects.get(pk=quarantined.pk).quarantined_at
    assert entered is not None, "probation counts from then"
    assert abs(entered - since) < timedelta(seconds=5)


def test_what_no_computation_mends_stays_told(quarantined: Lesson) -> None:
    execute("UPDATE lesson_tombstone SET mac_key_id = 'another'")
    assert wrong(doctor("--repair")) == ["tombstones"]


def test_a_model_that_is_away_is_named(quarantined: Lesson, settings: Any) -> None:
    LessonEmbedding.objects.all().delete()
    settings.SONDER_EMBEDDING = "openai"
    with pytest.raises(CommandError, match=r"^vectors: .*SONDER_EMBEDDING_URL"):
        call_command("doctor", "--repair", stdout=StringIO())
