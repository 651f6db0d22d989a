"""A filled store of the previous release, migrated forward: sound, complete, and at work again."""

import json
import lzma
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.migrations.loader import MigrationLoader

from sonder_site.embedded import preflight, server
from sonder_site.embedded.cluster import Address
from tests.settings import SECRET_KEY
from tests.system.figures import tell
from tests.system.stores import PATIENCE_SECONDS, ROOT, environment, new_store

DUMP = Path(__file__).parent / "data" / "release-9679543.sql.xz"
OURS = ("memory", "review")
APPLIED = re.compile(r"^\d+\t(\w+)\t(\w+)\t", re.MULTILINE)


def dumped() -> bytes:
    return lzma.decompress(DUMP.read_bytes())


@pytest.fixture
def old_store() -> Iterator[Path]:
    """An embedded store with the tables of the previous release."""
    with new_store() as var:
        try:
            load(server.ensure_running(var))
            yield var
        finally:
            server.release(var)


def load(at: Address) -> None:
    psql = [str(preflight.programs() / "psql"), "--no-psqlrc", "--quiet", "--single-transaction"]
    place = ["--set=ON_ERROR_STOP=1", f"--host={at.host}", f"--port={at.port}", f"--username={at.user}", "sonder"]
    subprocess.run([*psql, *place], input=dumped(), stdout=subprocess.DEVNULL, timeout=PATIENCE_SECONDS, check=True)


def upgraded(var: Path) -> dict[str, Any]:
    more = {"SECRET_KEY": SECRET_KEY, "SONDER_EMBEDDING": "hashing", "SONDER_TRUST_POLICY": "reference"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.system.upgrading"], cwd=ROOT, env=environment(var, **more), capture_output=True,
        text=True, timeout=3 * PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_filled_store_of_the_previous_release_is_sound_and_at_work_after_migrating(old_store: Path) -> None:
    told = upgraded(old_store)
    before, after = told["before"], told["after"]
    tell(
        "upgrade", rows=sum(before.values()), lost=sum(max(before[name] - after[name], 0) for name in before),
        twice=sum(max(after[name] - before[name], 0) for name in before) + told["rebuilt"]["corrected"],
        wrong=len(told["troubles"]) + len(told["troubles_later"]) + len(told["refused"]),
    )  # fmt: skip
    assert told["waiting"] > 0
    assert told["left"] == 0
    assert after == before
    assert min(before.values()) > 0
    assert (told["troubles"], told["troubles_later"]) == ([], [])
    assert told["rebuilt"] == {"corrected": 0, "standings": told["rebuilt"]["standings"], "same": True}
    assert told["rebuilt"]["standings"] > 50
    assert told["worked"] == {"lessons": told["worked"]["lessons"], "statuses": [200, 201], "credited": 1}
    assert told["worked"]["lessons"] > 0
    assert told["refused"] == {}


def test_the_dump_is_of_a_release_whose_migrations_todays_go_on_from() -> None:
    (block,) = re.findall(r"^COPY public\.django_migrations .*?^\\\.$", dumped().decode(), re.MULTILINE | re.DOTALL)
    applied = APPLIED.findall(block)
    known = sorted(MigrationLoader(None).disk_migrations)
    for app in OURS:
        then, now = ([name for label, name in each if label == app] for each in (applied, known))
        assert 0 < len(then) < len(now)
        assert now[: len(then)] == then
    assert set(applied) <= set(known)
