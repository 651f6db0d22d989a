"""`evaluate loop` with real processes: its own database, its own broker, the product's worker."""

import os
from pathlib import Path

import pytest
from django.db import connection

from evaluation.loop.run import evaluate
from evaluation.loop.stage import PREFIX, Broken, Stage
from memory.models import Interaction

COUNT = 30


def databases() -> list[str]:
    """Those that this process made."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [f"{PREFIX}{os.getpid()}"])
        return [name for (name,) in cursor.fetchall()]


@pytest.mark.django_db(transaction=True)
def test_it_plays_every_arm_in_databases_of_its_own_and_leaves_nothing_behind() -> None:
    told: list[tuple[int, int]] = []
    options = {
        "seeds": 1,
        "interactions": COUNT,
        "environment": {"SONDER_TRUST_POLICY": "trial", "SONDER_EMBEDDING": "hashing"},
    }
    report = evaluate(options, lambda done, total, what: told.append((done, total)))
    assert told[-1] == (3 * COUNT, 3 * COUNT)
    figures = {figure.key: figure for figure in report.figures}
    assert 0 < figures["loop.success"].value <= 100
    (stores,) = [table for table in report.tables if "stores" in table.title]
    assert stores.rows[0][1] > 200  # lessons that were handed out from
    assert report.parameters["interactions"] == COUNT
    assert databases() == []
    assert Interaction.objects.count() == 0


def test_a_process_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    stage = Stage(database="none_such", folder=tmp_path, environment={})
    with pytest.raises(Broken, match=r"(?s)`python -m evaluation.loop play` ended with code 1.*missing"):
        list(stage.told("play"))
