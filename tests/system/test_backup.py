"""A store that is backed up and brought back answers the same, but for what was erased meanwhile."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.figures import tell
from tests.system.stores import manage, new_store

TEXTS = [
    "Pass `timeout=10` to every `requests.get()` call so that a dead server cannot hang the worker.",
    "Open text files with `encoding='utf-8'`, because the default differs between machines.",
    "Use `subprocess.run([...], check=True)` with a list of arguments, never a shell string.",
]
CONTENTS = """
import json
from memory.models import Lesson, LessonEmbedding
lessons = {str(pk): [text, state] for pk, text, state in Lesson.objects.values_list("pk", "text", "state")}
print(json.dumps({"lessons": lessons, "vectors": LessonEmbedding.objects.count()}))
"""


def run(var: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command on the store, whose secret is its own."""
    return manage(var, *arguments, SECRET_KEY="")


def told(var: Path, *arguments: str) -> Any:
    done = run(var, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with three lessons."""
    file = tmp_path_factory.mktemp("lessons") / "lessons.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    with new_store() as var:
        for command in (["migrate", "-v0"], ["reembed"], ["import_lessons", str(file)]):
            done = run(var, *command)
            assert done.returncode == 0, done.stderr
        yield var


@pytest.fixture(scope="module")
def backup(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(told(filled, "backup", str(tmp_path_factory.mktemp("backups")), "--json")["folder"])


def test_what_was_erased_after_a_backup_stays_erased(filled: Path, backup: Path) -> None:
    before = told(filled, "shell", "-v0", "-c", CONTENTS)
    gone = min(before["lessons"])
    assert run(filled, "erase", "lesson", gone, "--apply").returncode == 0
    with new_store() as other:
        done = told(other, "restore", str(backup), "--ledger", str(filled / "erasures.ndjson"), "--json")
        assert done["erased_again"] == 1
        after = told(other, "shell", "-v0", "-c", CONTENTS)
        kept = {pk: lesson for pk, lesson in before["lessons"].items() if pk != gone}
        tell(
            "backup", erased=done["erased_again"], lost=len(kept.keys() - after["lessons"].keys()),
            wrong=len(after["lessons"].keys() - kept.keys()) + sum(after["lessons"].get(pk) != kept[pk] for pk in kept),
        )  # fmt: skip
        assert after["lessons"] == kept
        assert (before["vectors"], after["vectors"]) == (3, 2)
        assert (other / "secret-key").read_bytes() == (filled / "secret-key").read_bytes()
        assert gone in (other / "erasures.ndjson").read_text()
        sound = run(other, "doctor")
        assert sound.returncode == 0, sound.stdout


def test_a_backup_is_for_its_owner_alone(backup: Path) -> None:
    assert backup.stat().st_mode & 0o077 == 0, "it holds the secret"
    assert {path.name for path in backup.iterdir()} == {"database.dump", "secret-key", "manifest.json"}


def test_nothing_is_restored_over_a_store_or_from_a_backup_that_is_not_whole(
    filled: Path, backup: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(backup, cut)
    (cut / "database.dump").write_bytes((backup / "database.dump").read_bytes()[:-100])
    lost = ["--ledger", str(tmp_path / "lost.ndjson")]
    for arguments, words in (
        ([backup], "never overwrites"),
        ([cut], "is damaged: database.dump differs"),
        ([tmp_path / "nothing"], "is no backup"),
        ([backup, *lost], "there is no file"),
    ):
        refused = run(filled, "restore", *map(str, arguments))
        assert refused.returncode == 1
        assert words in refused.stderr
    assert len(told(filled, "shell", "-v0", "-c", CONTENTS)["lessons"]) >= 2
