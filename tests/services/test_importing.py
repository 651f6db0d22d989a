"""Files as people have them: what is wrong is named with its line, and nothing else is lost."""

from pathlib import Path

import pytest

from memory.errors import Invalid
from memory.models import Lesson
from memory.services.importing import import_lines, read_lines, start_run

GOOD = '{"text": "Close every cursor before you commit the transaction in `psycopg`."}'


def written(folder: Path, *lines: str) -> Path:
    path = folder / "lessons.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", '{"text": 7}', '{"txt": "x"}', '{"text": "x", "n": ' + "9" * 5000 + "}", "[" * 100_000]
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(Invalid, match="line 2"):
        list(read_lines(written(tmp_path, GOOD, line)))


@pytest.mark.django_db
@pytest.mark.parametrize("ref", ["a\\u0000b", "a\\ud800b"])
def test_an_id_that_a_database_cannot_hold_is_cleaned_and_the_lesson_kept(tmp_path: Path, ref: str, space) -> None:
    path = written(tmp_path, GOOD[:-1] + f', "id": "{ref}"' + "}")
    list(import_lines(read_lines(path), start_run(path)))
    assert Lesson.objects.get().source_ref.replace("?", "").replace("\ufffd", "") == "ab"
