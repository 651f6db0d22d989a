"""A store that is backed up and brought back answers the same, but for what was erased meanwhile."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.figures import tell
from tests.system.stores import copy, manage, new_store

TEXTS = [
    "Pass `timeout=10` to every `requests.get()` call so that a dead server cannot hang the worker.",
    "Open text files with `encoding='utf-8'`, because the default differs between machines.",
    "Use `subprocess.run([...], check=True)` with a list of arguments, never a shell string.",
]
FILL = """
from django.core.management import call_command
from memory.services.space import open_first_space
open_first_space()
call_command("import_lessons", {file!r}, json=True)
"""
CONTENTS = """
import json
from memory.models import Lesson, LessonEmbedding
told = {"lessons": {str(pk): [text, state] for pk, text, state in Lesson.objects.values_list("pk", "text", "state")},
        "vectors": LessonEmbedding.objects.count()}
"""
ERASE_ONE = """
from django.core.management import call_command
call_command("erase", "lesson", min(told["lessons"]), apply=True, stdout=open("/dev/null", "w"))
"""
EXAMINE = """
from memory.services.doctor import examine
told["troubles"] = [finding.check for finding in examine() if not finding.ok]
"""
REFUSALS = """
from django.core.management import CommandError, call_command
told["refused"] = []
for arguments in {arguments!r}:
    try:
        call_command("restore", *arguments)
    except CommandError as refusal:
        told["refused"].append(str(refusal))
told["left"] = Lesson.objects.count()
"""
TELL = "print(json.dumps(told))"


def told(var: Path, *arguments: str) -> Any:
    """What a command on the store, whose secret is its own, prints as JSON."""
    done = manage(var, *arguments, SECRET_KEY="", SONDER_EMBEDDING="hashing")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ran(var: Path, *code: str) -> Any:
    """What a few statements on the store find: starting a command takes longer than most of what it does."""
    return told(var, "shell", "-v0", "-c", "".join(code))


@pytest.fixture(scope="module")
def filled(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with three lessons."""
    file = tmp_path_factory.mktemp("lessons") / "lessons.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    with new_store() as var:
        copy(template, var)
        assert ran(var, FILL.format(file=str(file)))["stored"] == len(TEXTS)
        yield var


@pytest.fixture(scope="module")
def backup(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(told(filled, "backup", str(tmp_path_factory.mktemp("backups")), "--json")["folder"])


def test_what_was_erased_after_a_backup_stays_erased(filled: Path, backup: Path) -> None:
    before = ran(filled, CONTENTS, ERASE_ONE, TELL)
    gone = min(before["lessons"])
    with new_store() as other:
        done = told(other, "restore", str(backup), "--ledger", str(filled / "erasures.ndjson"), "--json")
        assert done["erased_again"] == 1
        after = ran(other, CONTENTS, EXAMINE, TELL)
        kept = {pk: lesson for pk, lesson in before["lessons"].items() if pk != gone}
        tell(
            "backup", erased=done["erased_again"], lost=len(kept.keys() - after["lessons"].keys()),
            wrong=len(after["lessons"].keys() - kept.keys()) + sum(after["lessons"].get(pk) != kept[pk] for pk in kept),
        )  # fmt: skip
        assert after["lessons"] == kept
        assert (before["vectors"], after["vectors"]) == (3, 2)
        assert after["troubles"] == []
        assert (other / "secret-key").read_bytes() == (filled / "secret-key").read_bytes()
        assert gone in (other / "erasures.ndjson").read_text()


def test_a_backup_is_for_its_owner_alone(backup: Path) -> None:
    assert backup.stat().st_mode & 0o077 == 0, "it holds the secret"
    assert {path.name for path in backup.iterdir()} == {"database.dump", "secret-key", "manifest.json"}


def test_nothing_is_restored_over_a_store_or_from_a_backup_that_is_not_whole(
    filled: Path, backup: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(backup, cut)
    (cut / "database.dump").write_bytes((backup / "database.dump").read_bytes()[:-100])
    lost = tmp_path / "lost.ndjson"
    tried: list[list[object]] = [[backup], [cut], [tmp_path / "nothing"], [backup, "--ledger", lost]]
    words = ["never overwrites", "is damaged: database.dump differs", "is no backup", "there is no file"]
    arguments = [list(map(str, each)) for each in tried]
    found = ran(filled, CONTENTS, REFUSALS.format(arguments=arguments), TELL)
    assert [word in refusal for word, refusal in zip(words, found["refused"], strict=True)] == [True] * len(tried)
    assert found["left"] == len(found["lessons"]) >= 2
