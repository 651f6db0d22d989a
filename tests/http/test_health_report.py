"""The learning-health report over HTTP and as a command."""

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import pytest
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from memory.models import Lesson
from memory.services.health import HealthReport
from memory.services.health import report as make_report
from memory.services.health.view import WEEKS
from tests.conftest import Agent
from tests.http.calls import nothing_changes, refused, report, start

pytestmark = pytest.mark.django_db

HEALTH = "/api/v1/health/"
TASK = "sort the names with casefold"


@pytest.fixture
def kept(lesson: Callable[..., Lesson]) -> Lesson:
    return lesson("Sort names with `sorted(names, key=str.casefold)` so that case does not decide.")


def read(agent: Agent) -> dict[str, Any]:
    response = agent.client.get(HEALTH)
    assert response.status_code == 200, response.content
    return dict(response.json())


def test_the_report_has_every_figure_and_changes_nothing(agent: Agent, kept: Lesson) -> None:
    report(agent.client, start(agent.client, TASK)["id"], "accepted")
    with nothing_changes():
        shown = read(agent)
    assert set(shown) == {field.name for field in fields(HealthReport)}
    assert shown["state"] == "building"
    assert [reason["code"] for reason in shown["reasons"]] == ["few_judged"]
    caller = shown["classes"][0]
    assert (caller["source"], caller["wins"], caller["losses"], caller["win_rate"]) == ("caller", 1, 0, 1.0)
    assert len(shown["weeks"]) == WEEKS
    assert [row["n"] for row in shown["exposures"] if row["exposure"] == "served"] == [1]
    assert [row["n"] for row in shown["lessons"] if row["state"] == "active"] == [1]


def test_the_answer_is_the_services_report(agent: Agent, kept: Lesson) -> None:
    report(agent.client, start(agent.client, TASK)["id"], "failed")
    shown = read(agent)
    whole = json.loads(json.dumps(asdict(make_report(agent.account.pk)), default=lambda at: at.isoformat()))
    for moment in ("measured_at", "since", "weeks", "queues"):
        shown.pop(moment), whole.pop(moment)
    assert shown == whole


def test_another_accounts_work_is_in_no_figure_and_no_word(agent: Agent, rival: Agent, kept: Lesson) -> None:
    before = read(agent)
    theirs = start(rival.client, f"{TASK} of the secret project", project="secret", session="secret")
    report(rival.client, theirs["id"], "failed", detail="a secret detail")
    response = agent.client.get(HEALTH)
    after = response.json()
    assert not [word for word in ("secret", theirs["id"], str(rival.account.pk)) if word in response.content.decode()]
    for moment in ("measured_at", "since", "weeks"):
        before.pop(moment), after.pop(moment)
    assert after == before
    assert [row["losses"] for row in read(rival)["classes"]] == [1, 0, 0, 0, 0]


def test_no_lesson_is_told_by_text_or_id(agent: Agent, kept: Lesson) -> None:
    content = agent.client.get(HEALTH).content.decode()
    assert "casefold" not in content
    assert str(kept.pk) not in content


def test_reading_it_needs_the_scope_read(agent: Agent, machine: Agent, reader: Agent) -> None:
    refused(machine.client.get(HEALTH), 403)
    assert read(reader)["state"] == "building"


@pytest.mark.parametrize("name", ["account", "weeks", "page_size"])
def test_it_takes_no_parameter(agent: Agent, name: str) -> None:
    refused(agent.client.get(HEALTH, {name: "1"}), 400, name)


def test_the_description_knows_every_figure() -> None:
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    assert set(schemas["HealthReport"]["properties"]) == {field.name for field in fields(HealthReport)}
    assert schemas["EvidenceClass"]["properties"]["win_rate"] == {
        "type": "number",
        "format": "double",
        "nullable": True,
    }
    assert schemas["Queue"]["properties"]["oldest_at"] == {"type": "string", "format": "date-time", "nullable": True}
    assert schemas["Week"]["properties"]["provenance"]["items"] == {"$ref": "#/components/schemas/Share"}


class TestTheCommand:
    def test_prints_one_document_about_the_whole_installation(
        self, agent: Agent, rival: Agent, kept: Lesson, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for who in (agent, rival):
            report(who.client, start(who.client, TASK)["id"], "accepted")
        call_command("health", "--json")
        shown = json.loads(capsys.readouterr().out)
        assert set(shown) == {field.name for field in fields(HealthReport)}
        assert shown["classes"][0]["wins"] == 2

    def test_tells_a_person_the_state_the_reasons_and_the_figures(
        self, agent: Agent, kept: Lesson, capsys: pytest.CaptureFixture[str]
    ) -> None:
        report(agent.client, start(agent.client, TASK)["id"], "accepted")
        call_command("health")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "BUILDING, by the last four weeks"
        assert lines[1].startswith("  building: 1 interaction was judged")
        assert "  caller: 1 won, 0 lost; 100% won, plausibly 21% to 100%" in lines
        assert "  served: 1" in lines
        assert "  credit: 1 waiting, 0 late" in lines
        assert "  daily: waiting, no good run yet" in lines
