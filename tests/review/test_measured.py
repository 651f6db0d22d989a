"""The page of what was measured: every figure, its bar, and what it does not show; nothing to read is said so."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from evaluation.catalogue import save
from memory.models import Account
from review.queries import measured as reads
from tests.evaluation.test_report import REPORT
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE = "/review/health/measured/"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Where the release's reports lie, and those of this installation."""
    settings.SONDER_VAR = str(tmp_path / "var")
    monkeypatch.setattr(reads, "COMMITTED", tmp_path / "release")
    monkeypatch.setattr(reads, "EVALUATIONS", {"trust": "how well rules do", "loop": "whether an agent does better"})
    return {"release": tmp_path / "release", "here": tmp_path / "var" / "reports"}


@pytest.fixture
def page(client: Client, account: Account) -> Client:
    client.force_login(get_user_model().objects.get(pk=member(account, "viewer", "vic").user_id))
    return client


def test_a_report_that_was_never_made_says_how_to_make_it(page: Client) -> None:
    told = page.get(PAGE, {"report": "loop"}).content.decode()
    assert "Not measured yet" in told
    assert "manage.py evaluate loop" in told
    assert "whether an agent does better" in told


def test_every_figure_stands_with_its_interval_its_bar_and_the_limits(page: Client, folders: dict[str, Path]) -> None:
    save(REPORT, folders["release"])
    told = page.get(PAGE).content.decode()
    for words in (
        "44% of what an oracle could.", "44.2%", "[36, 51]", "at least 40%", "not met",
        "A simulated world is not yours.", "Measured for this release", "2 bars, 1 missed", "<svg",
    ):  # fmt: skip
        assert words in told
    tables = page.get(PAGE, {"tables": "1"}).content.decode()
    assert "<svg" not in tables.split('id="main"')[1]
    assert '<th scope="col">Plausible (95%)</th>' in tables


def test_what_was_measured_here_comes_first_and_the_release_is_one_click_away(
    page: Client, folders: dict[str, Path]
) -> None:
    save(REPORT, folders["release"])
    save(replace(REPORT, answer="12% here."), folders["here"])
    here, release = (page.get(PAGE, query).content.decode() for query in ({}, {"from": "release"}))
    assert "12% here." in here
    assert "Measured in this installation" in here
    assert "?report=trust&amp;from=release" in here
    assert "44% of what an oracle could." in release


def test_words_of_a_report_are_escaped(page: Client, folders: dict[str, Path]) -> None:
    save(replace(REPORT, answer="<script>x</script>", limits=("<img src=x>",)), folders["here"])
    told = page.get(PAGE).content.decode()
    assert "<script>x" not in told
    assert "<img src=x>" not in told


def test_the_export_is_the_report(page: Client, folders: dict[str, Path]) -> None:
    save(REPORT, folders["release"])
    answer = page.get(f"{PAGE}report.json", {"report": "trust"})
    assert answer.json()["figures"][0]["value"] == 44.2
    assert "trust.json" in answer["Content-Disposition"]
    assert page.get(f"{PAGE}report.json", {"report": "loop"}).status_code == 404


def test_an_unknown_report_names_those_there_are(page: Client) -> None:
    answer = page.get(PAGE, {"report": "../../etc/passwd"})
    assert answer.status_code == 404
    assert "there are trust, loop" in answer.content.decode()


def test_nobody_reads_it_without_a_login(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    assert client.get(f"{PAGE}report.json").status_code == 302
