"""requirements.lock is what `make` installs, so it must be what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
WANTED = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]


@pytest.mark.parametrize("line", WANTED)
def test_the_lock_pins_a_version_that_pyproject_allows(line: str) -> None:
    requirement = Requirement(line)
    pinned = re.findall(rf"^{canonicalize_name(requirement.name)}==(\S+)", LOCK, re.MULTILINE)
    assert pinned, "run `make lock`"
    assert all(requirement.specifier.contains(version) for version in pinned), "run `make lock`"


def test_every_pinned_package_has_a_digest() -> None:
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) > len(PROJECT["dependencies"])
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_lock_names_no_package_index_and_no_path() -> None:
    assert not re.search(r"https?://|file:|^-|/", LOCK, re.MULTILINE)
