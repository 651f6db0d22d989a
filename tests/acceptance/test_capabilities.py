"""docs/capabilities.md tells the truth: what it names exists, and it names what must be shown."""

import ast
import re
from pathlib import Path

import pytest

from tests.markdown import sections

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/capabilities.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)((?:::\w+)*)`", PAGE)
CAPABILITIES = [
    "1 Rejected-value tombstone",
    "2 Explicit trust state",
    "3 Bitemporal validity",
    "4 Scope enforced in retrieval",
    "5 Append-only mutation audit",
    "6 Human review surface",
    "7 Negative retrieval assertion",
]


def defined(path: Path, *names: str) -> bool:
    """Whether a file has this class or function, or a class this method."""
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for name in names:
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        if not found:
            return False
        body = found[0].body
    return True


def written_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_the_seven_are_each_there_with_a_file_and_a_test() -> None:
    told = sections(sections(PAGE)["The seven"], "###")
    assert list(told) == CAPABILITIES
    for title, text in told.items():
        code, proof = text.split("* Tests:")
        assert re.search(r"`memory/[\w/]+\.py`", code), title
        assert re.search(r"`tests/[\w/]+\.py::\w+", proof), title


@pytest.mark.parametrize(("file", "names"), sorted(set(NAMED)))
def test_every_file_and_every_test_that_is_named_exists(file: str, names: str) -> None:
    assert (ROOT / file).is_file()
    assert defined(ROOT / file, *names.split("::")[1:])


def test_every_acceptance_test_is_listed_under_its_id() -> None:
    listed = re.findall(r"^\| `([a-z_.]+)` \| .+ \| `tests/acceptance/(\w+)\.py::(\w+)` \|$", PAGE, re.MULTILINE)
    assert len(listed) == 19
    assert all(
        test == "test_" + row.replace(".", "_") and file == f"test_{row.split('.')[0]}" for row, file, test in listed
    )
    groups = {file for _, file, _ in listed}
    written = set().union(*(written_in(Path(__file__).with_name(f"{group}.py")) for group in groups))
    assert written == {test for _, _, test in listed}


def test_every_test_of_the_reviewers_pages_is_listed() -> None:
    files = sorted(Path(__file__).parent.glob("test_people_*.py"))
    written = {(f"tests/acceptance/{file.name}", f"::{name}") for file in files for name in top_level(file)}
    assert written
    assert written == {(file, names) for file, names in NAMED if "test_people_" in file}


def top_level(path: Path) -> set[str]:
    """The test functions and test classes of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {name for name in found if name.lower().startswith("test")}
