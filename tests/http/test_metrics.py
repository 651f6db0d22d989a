"""What Prometheus reads: the health report's own figures, for who has the key, about nobody in particular."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from memory.models import Account
from memory.services.credit import sweep
from memory.services.health import report
from memory.services.metrics import exposition
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
KEY = "of thirty characters and more, for the watcher"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def open_page(settings: Any) -> None:
    settings.SONDER_METRICS_KEY = KEY


@pytest.fixture
def work(account: Account, space: Any) -> None:
    """Three pieces of work: won, lost, and nobody's."""
    callers, lessons = make_callers(account), make_lessons(2)
    for n, signal in enumerate(["accepted", "failed"]):
        say(callers["caller"], serve(account, f"task {n}", lessons).pk, signal)
    serve(account, "task without a judge", lessons)
    sweep()


def samples(page: bytes) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


@pytest.mark.usefixtures("open_page")
class TestThePage:
    def test_shows_the_figures_of_the_report(self, work: None) -> None:
        answer = Client().get("/metrics", headers={"Authorization": f"Bearer {KEY}"})
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
        found = samples(answer.content)
        assert value(found, "sonder_interactions") == 3
        assert value(found, "sonder_outcomes", source="caller", result="win") == 1
        assert value(found, "sonder_outcomes", source="caller", result="loss") == 1
        assert value(found, "sonder_win_rate", source="caller", bound="estimate") == 0.5
        assert value(found, "sonder_lessons", state="active", age="week") == 2
        assert value(found, "sonder_queue_waiting", queue="credit") == 0
        assert sum(found[key] for key in found if key[0] == "sonder_health") == 1

    @pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}])
    def test_is_for_who_has_the_key(self, header: dict[str, str]) -> None:
        answer = Client().get("/metrics", headers=header)
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert b"sonder_health" not in answer.content

    def test_is_read_only(self) -> None:
        assert Client().post("/metrics", headers={"Authorization": f"Bearer {KEY}"}).status_code == 405

    def test_names_no_account_and_no_text(self, work: None, account: Account) -> None:
        page = exposition().decode()
        assert account.slug not in page
        assert str(account.pk) not in page
        assert "task" not in page.replace("sonder_task", "")


def test_without_a_key_in_the_settings_there_is_no_page() -> None:
    for header in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {KEY}"}):
        assert Client().get("/metrics", headers=header).status_code == 404


def test_an_empty_store_has_every_metric_that_the_documents_name() -> None:
    named = set(re.findall(r"`(sonder_\w+)`", (ROOT / "docs/observability.md").read_text()))
    families = {family.name for family in text_string_to_metric_families(exposition().decode())}
    assert named == families


def test_every_rule_watches_metrics_that_exist_and_says_what_to_do() -> None:
    rules = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text())["groups"][0]["rules"]
    families = {family.name for family in text_string_to_metric_families(exposition().decode())}
    for rule in rules:
        assert set(re.findall(r"sonder_\w+", rule["expr"])) <= families
        assert len(rule["annotations"]["summary"]) > 20


def test_ages_are_counted_from_the_moment_of_the_report(work: None) -> None:
    made = report()
    found = samples(exposition(made))
    for queue in made.queues:
        oldest = queue.oldest_at
        age = (made.measured_at - oldest).total_seconds() if oldest else 0
        assert value(found, "sonder_queue_oldest_seconds", queue=queue.name) == pytest.approx(age)
