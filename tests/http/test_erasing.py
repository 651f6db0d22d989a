"""DELETE erases, for a key that may, within its account, and says what went."""

import io
from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone

from memory.models import ErasureRecord, Fact, Interaction, Lesson, Project, PruneArchive, PrunePlan
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


def learned(by: Agent, lesson: Callable, text: str = TEXT) -> Lesson:
    """A lesson from an agent's work."""
    found: Lesson = lesson(text)
    Lesson.objects.filter(pk=found.pk).update(source_interaction=start(by, "anything")["id"])
    return found


def test_lessons_facts_and_projects_are_erased_likewise(custodian: Agent, lesson: Callable) -> None:
    bad = learned(custodian, lesson)
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


def test_where_lessons_are_shared_an_account_erases_what_its_own_work_taught(
    custodian: Agent, rival: Agent, lesson: Callable
) -> None:
    theirs, imported = learned(rival, lesson), lesson("Log every lost connection with its host name.")
    for other in (theirs, imported):
        for query in ("", "?dry_run=true"):
            answer = custodian.client.delete(f"/api/v1/lessons/{other.pk}/{query}")
            assert answer.status_code == 403
            assert f"manage.py erase lesson {other.pk} --apply" in answer.json()["detail"]
    assert Lesson.objects.count() == 2
    assert not ErasureRecord.objects.exists()
    call_command("erase", "lesson", str(theirs.pk), "--apply", stdout=io.StringIO())
    assert Lesson.objects.get() == imported


def test_a_merged_lesson_is_erased_by_whose_work_taught_it(custodian: Agent, rival: Agent, lesson: Callable) -> None:
    merged = learned(rival, lesson)
    plan = PrunePlan.objects.create(digest="d" * 64, clusters=[], states={"account": None, "lessons": {}})
    merged.refresh_from_db()
    row = {"id": str(merged.pk), "source_interaction": str(merged.source_interaction)}
    PruneArchive.objects.create(
        plan=plan, lesson=merged.pk, kind="lesson", payload={"row": row}, expires_at=timezone.now()
    )
    Lesson.objects.filter(pk=merged.pk).delete()
    assert custodian.client.delete(f"/api/v1/lessons/{merged.pk}/").status_code == 403
    owner = make_agent(rival.account, "caller", ["admin"])
    assert owner.client.delete(f"/api/v1/lessons/{merged.pk}/").status_code == 200


def test_where_lessons_are_an_accounts_own_it_erases_any_of_them(custodian: Agent, lesson: Callable) -> None:
    with override_settings(SONDER_LESSON_SCOPE="account"):
        own = lesson(TEXT, account_id=custodian.account.pk)
        assert custodian.client.delete(f"/api/v1/lessons/{own.pk}/").status_code == 200


def test_the_same_request_again_is_told_the_same(custodian: Agent) -> None:
    work = start(custodian, "anything")
    answers = [
        custodian.client.delete(f"/api/v1/interactions/{work['id']}/", headers={"Idempotency-Key": "erase-1"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
