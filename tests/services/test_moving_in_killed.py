"""An import that is killed is run again, and the store is the same as if nothing had happened."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory.models import Account, EmbeddingSpace, ImportedRow, Interaction, Lesson, LessonUsage, Outcome
from memory.models.sql import fetch
from memory.services.sonder.run import import_store
from memory.services.sonder.snapshot import open_snapshot
from memory.services.standing import differences
from tests.services.old_store import OldStore

ROOT = Path(__file__).resolve().parents[2]
# Imports in batches of five rows, and before each waits for a line. It never waits between a batch and its notes.
CHILD = """
import sys, django
from dataclasses import replace
from pathlib import Path
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from memory.models import Account
from memory.services.sonder import run
from memory.services.sonder.snapshot import open_snapshot
def held(take):
    def taken(job, rows):
        print("batch", flush=True)
        sys.stdin.readline()
        take(job, rows)
    return taken
run.TABLES = tuple(replace(table, size=5, take=held(table.take)) for table in run.TABLES)
with open_snapshot(Path(sys.argv[2])) as source:
    for step in run.import_store(source, Account.objects.get(slug="acme")):
        pass
"""


def store(path: Path) -> OldStore:
    old = OldStore(path)
    for n in range(12):
        text = f"Pin the parser number {n} to `=={n}.1` in `requirements.txt`, because a release renamed its tokens."
        old.add("lessons", id=f"l{n}", text=text, source_interaction=f"i{n}")
    for n in range(14):
        signal = ("accepted", "failed", "used")[n % 3]
        old.work(f"i{n}", f"l{n % 12}", f"l{(n + 5) % 12}", task=f"task {n}", signal=signal, session_id="talk")
    old.connection.close()
    return old


def kill_after(path: Path, batches: int) -> None:
    """Lets a child take so many batches, and kills it while it is at the next."""
    command = [sys.executable, "-c", CHILD, connection.settings_dict["NAME"], str(path)]
    variables = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "SONDER_LESSON_SCOPE": "account"}
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(batches):
            assert child.stdout.readline() == "batch\n"
            child.stdin.write("\n")
            child.stdin.flush()
        child.send_signal(signal.SIGKILL)  # somewhere in the last one
        child.wait(timeout=120)


def run(path: Path, account: Account) -> None:
    with open_snapshot(path) as source:
        for _ in import_store(source, account):
            pass


def held(account: Account) -> dict[str, Any]:
    """What an account holds, without the ids that are made anew with each import."""
    works = Interaction.objects.filter(account=account).order_by("pk")
    usages = LessonUsage.objects.filter(interaction__account=account)
    sums = """
        SELECT l.source_ref, s.source, s.n, s.losses, s.reward
        FROM lesson_source_sum s JOIN lesson l ON l.id = s.lesson_id WHERE l.account_id = %s
    """
    return {
        "work": list(works.values_list("task", "created_at", "session__external_id", "project__slug")),
        "lessons": list(Lesson.objects.filter(account=account).order_by("source_ref").values_list(
            "source_ref", "text", "state", "created_at")),
        "usage": sorted(usages.values_list("lesson__source_ref", "interaction__task", "rank", "reward", "weight")),
        "outcomes": sorted(Outcome.objects.filter(interaction__account=account).values_list(
            "interaction__task", "signal", "sequence", "created_at")),
        "sums": sorted(fetch(sums, [account.pk])),
        "notes": sorted(ImportedRow.objects.filter(account=account).values_list("kind", "legacy_id", "refusal")),
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_an_import_that_was_killed_twice_ends_as_one_that_was_not(
    tmp_path: Path, account: Account, rival_account: Account, space: EmbeddingSpace, settings: Any
) -> None:
    settings.SONDER_LESSON_SCOPE = "account"
    old = store(tmp_path / "memory.db")
    kill_after(old.path, 2)
    assert Interaction.objects.count() in (5, 10), "a batch is there whole or not at all"
    kill_after(old.path, 9)
    assert Interaction.objects.count() == 14
    assert Outcome.objects.count() < 14
    run(old.path, account)
    run(old.path, rival_account)
    assert held(account) == held(rival_account)
    assert len(held(account)["usage"]) == 28
    assert differences() == []
