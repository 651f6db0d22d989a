"""DELETE erases, for a key that may, within its account, and says what went."""

from collections.abc import Callable

import pytest

from memory.models import ErasureRecord, Fact, Interaction, Lesson, Project
from tests.conftest import Agent, make_agent
from tests.http.test_quarantine_walk import TASK, TEXT, report, start

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_ledger(settings, tmp_path) -> None:
    settings.SONDER_VAR = str(tmp_path)


@pytest.fixture
def custodian(account) -> Agent:
    """A key that may erase."""
    return make_agent(account, "caller", ["loop", "read", "admin"])


def test_an_interaction_is_erased_and_does_not_exist_any_more(custodian: Agent, lesson: Callable) -> None:
    lesson(TEXT)
    work = start(custodian, TASK.format(1))
    report(custodian, work["id"], "used")
    answer = custodian.client.delete(f"/api/v1/interactions/{work['id']}/")
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["kind"], told["subject"], told["dry_run"]) == ("interaction", work["id"], False)
    assert told["counts"]["outcome"] == told["counts"]["lesson_usage"] == told["counts"]["interaction"] == 1
    assert custodian.client.get(f"/api/v1/interactions/{work['id']}/").status_code == 404
    assert ErasureRecord.objects.get().actor == f"api_key:{custodian.key.prefix}"


def test_a_dry_run_only_counts(custodian: Agent) -> None:
    work = start(custodian, "anything")
    address = f"/api/v1/interactions/{work['id']}/?dry_run=true"
    assert custodian.client.delete(address).json()["counts"] == {"interaction": 1}
    assert Interaction.objects.exists()
    assert not ErasureRecord.objects.exists()
    assert custodian.client.delete(f"/api/v1/interactions/{work['id']}/?dry_run=maybe").status_code == 400
    assert custodian.client.delete(f"/api/v1/interactions/{work['id']}/?dryrun=true").status_code == 400
    assert Interaction.objects.exists()


def test_lessons_facts_and_projects_are_erased_likewise(custodian: Agent, lesson: Callable) -> None:
    bad = lesson(TEXT)
    fact = custodian.client.post("/api/v1/facts/", {"project": "api", "text": "Tests run."}, format="json").json()
    project = Project.objects.get()
    for address in (f"lessons/{bad.pk}", f"facts/{fact['id']}", f"projects/{project.pk}"):
        assert custodian.client.delete(f"/api/v1/{address}/").status_code == 200
        assert custodian.client.delete(f"/api/v1/{address}/").status_code == 404
    assert not Lesson.objects.exists()
    assert not Fact.objects.exists()
    assert not Project.objects.exists()


def test_a_key_without_the_scope_and_another_account_erase_nothing(agent: Agent, rival_account) -> None:
    work = start(agent, "anything", project="api")
    stranger = make_agent(rival_account, "caller", ["loop", "read", "admin"])
    for address in (f"interactions/{work['id']}", f"projects/{Project.objects.get().pk}"):
        assert agent.client.delete(f"/api/v1/{address}/").status_code == 403
        assert stranger.client.delete(f"/api/v1/{address}/").status_code == 404
    assert Interaction.objects.get().pk


def test_the_same_request_again_is_told_the_same(custodian: Agent) -> None:
    work = start(custodian, "anything")
    answers = [
        custodian.client.delete(f"/api/v1/interactions/{work['id']}/", headers={"Idempotency-Key": "erase-1"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
