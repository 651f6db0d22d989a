"""The audit of packages: a known vulnerability fails a build; a service that is away is told of, and does not."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from scripts import audit
from scripts.audit import LOCK, verdict

SOUND = {"name": "django", "version": "5.2.19", "vulns": []}
SICK = {"name": "django", "version": "5.2.0", "vulns": [{"id": "PYSEC-2025-1", "fix_versions": ["5.2.1"]}]}
OURS = {"name": "sonder-private", "skip_reason": "Dependency not found on PyPI"}


def told(*packages: dict[str, Any], complaints: str = "") -> audit.Verdict:
    return verdict(json.dumps({"dependencies": packages, "fixes": []}), complaints)


def test_a_known_vulnerability_fails_and_is_named_with_its_remedy() -> None:
    made = told(SOUND, SICK, OURS)
    assert made.code == 1
    assert "django 5.2.0: PYSEC-2025-1, mended in 5.2.1" in made.words


def test_packages_without_one_pass_and_those_that_nobody_knows_are_named() -> None:
    made = told(SOUND, OURS)
    assert (made.code, made.words) == (
        0,
        "1 packages audited, no known vulnerability. Not on PyPI, so unknown: sonder-private.",
    )


def test_an_index_that_knows_no_package_is_no_clean_bill() -> None:
    made = told(OURS, OURS)
    assert made.code == 0
    assert "THE PACKAGES WERE NOT AUDITED" in made.words


@pytest.mark.parametrize("complaint", ["requests.exceptions.ConnectionError: ...", "Max retries exceeded with url"])
def test_a_network_that_goes_away_meanwhile_is_told_of(complaint: str) -> None:
    assert "THE PACKAGES WERE NOT AUDITED" in verdict("", complaint).words
    assert verdict("", complaint).code == 0


def test_any_other_trouble_fails() -> None:
    assert verdict("", "requirements.lock: line 3 has no hash").code == 2


@pytest.mark.parametrize("answer", ["<html>", "{}", '{"vulnerabilities": []}', "[]", None])
def test_without_a_service_that_knows_advisories_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    def get(url: str, **_: object) -> httpx.Response:
        if answer is None:
            raise httpx.ConnectError("no route")
        return httpx.Response(200, text=answer)

    monkeypatch.setattr(httpx, "get", get)
    made = audit.audit(Path("/nowhere"))
    assert made.code == 0
    assert "tells of no advisories here" in made.words


def test_the_lock_is_one_that_pip_audit_reads_without_resolving_anything() -> None:
    """Each package is pinned to one version with its digests, which is what `--disable-pip` needs."""
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if line and line[0] not in " #"]
    assert len(lines) > 100
    assert all("==" in line and line.endswith("\\") for line in lines)
