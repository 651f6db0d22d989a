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


def csv_file(folder: Path, content: str) -> Path:
    path = folder / "lessons.CSV"
    path.write_bytes(content.encode())
    return path


CSV = (
    'id,text,topic\r\n7,"Close every cursor before you commit,\nthe transaction in `psycopg`.",db\r\n\r\n'
    '8,"Say ""no""",x\r\n'
)


def test_a_csv_file_has_a_lesson_a_row_with_the_line_on_which_it_begins(tmp_path: Path) -> None:
    lines = list(read_lines(csv_file(tmp_path, "\ufeff" + CSV)))
    assert [(line.number, line.ref) for line in lines] == [(2, "7"), (5, "8")]
    assert lines[0].text == "Close every cursor before you commit,\nthe transaction in `psycopg`."
    assert lines[1].text == 'Say "no"'


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "line 1"),
        ("id,lesson\n1,x\n", "line 1"),
        ("text,text\nx,y\n", "line 1"),
        (CSV + "9,short\n", "line 6"),
        (CSV + "9,a,b,c\n", "line 6"),
        (CSV + '9,"open,b\n', "line 6"),
        (CSV + f"9,{'x' * 200_000},b\n", "line 6"),
    ],
)
def test_a_csv_row_that_cannot_be_read_is_named_by_its_line(tmp_path: Path, content: str, line: str) -> None:
    with pytest.raises(Invalid, match=line):
        list(read_lines(csv_file(tmp_path, content)))


@pytest.mark.django_db
def test_a_csv_file_goes_through_the_same_gates_as_json_lines(tmp_path: Path, space) -> None:
    texts = ["Close every cursor before you commit the transaction in `psycopg`.", "Mail bob@example.com first.", "!"]
    rows = "".join(f"{n},{text}\n" for n, text in enumerate(texts))
    path = csv_file(tmp_path, "id,text\n" + rows + f"9,{texts[0].upper()}\n")
    *_, (done, report) = import_lines(read_lines(path), start_run(path))
    assert (done, report.stored, dict(report.refused)) == (4, 1, {"private": 1, "empty": 1, "exact_duplicate": 1})
    assert [(row["line"], row["refused"]) for row in report.details if "refused" in row] == [
        (3, "private"), (4, "empty"), (5, "exact_duplicate"),
    ]  # fmt: skip
    assert Lesson.objects.get().source_ref == "0"
