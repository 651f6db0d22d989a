"""Warnings that somebody has seen: folded with name and note, until they worsen, are another, or a month is over."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from memory.errors import Conflict, Forbidden
from memory.models import Account, AlertAcknowledgement, JobRun, ReviewItem
from memory.services import alerts
from memory.services.authority import Person
from memory.services.erasure import erase
from memory.services.health import report, scheduled_jobs
from review.views import dashboard
from tests.models.rows import insert
from tests.services.people import member

pytestmark = pytest.mark.django_db
HEALTH, ACKNOWLEDGE, MIND = "/review/health/", "/review/health/acknowledge/", "/review/health/mind/"
WORDS = "A question has waited 8 days for a reviewer."


@pytest.fixture
def waiting(account: Account) -> ReviewItem:
    """A question that nobody saw for eight days."""
    item = ReviewItem.objects.get(pk=insert("review_item", account_id=account.pk, kind="vague")["id"])
    wait(item, days=8)
    return item


def wait(item: ReviewItem, days: float) -> None:
    ReviewItem.objects.filter(pk=item.pk).update(created_at=timezone.now() - timedelta(days=days))


@pytest.fixture
def ana(client: Client, account: Account) -> Person:
    who = member(account, "reviewer", "ana")
    client.force_login(get_user_model().objects.get(pk=who.user_id))
    return who


def body(client: Client, page: str = HEALTH) -> str:
    answer = client.get(page)
    assert answer.status_code == 200
    return answer.content.decode()


def state(client: Client) -> str:
    """The panel that says how the store is."""
    return body(client).split('aria-labelledby="state"')[1].split("</section>")[0]


@pytest.mark.usefixtures("waiting")
class TestAcknowledging:
    def test_folds_the_warning_with_name_and_note_here_and_on_the_dashboard(self, client: Client, ana: Person) -> None:
        assert "acknowledged" not in state(client)
        assert WORDS in body(client, "/review/")
        said = client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Ben is back on <Monday>."}, follow=True)
        assert "Acknowledged. It comes back if it worsens" in said.content.decode()
        folded = state(client).split("1 acknowledged</summary>")[1]
        assert WORDS in folded
        assert "<strong>ana</strong>" in folded
        assert "Ben is back on &lt;Monday&gt;." in folded
        front = body(client, "/review/")
        assert WORDS not in front
        assert "1 warning acknowledged." in front

    def test_needs_a_note_and_keeps_what_was_typed(self, client: Client, ana: Person) -> None:
        for note, shown in (("   ", ""), ("x" * 1001, "x" * 1001)):
            answer = client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": note})
            assert answer.status_code == 422
            text = answer.content.decode()
            assert "say in 1 to 1,000 characters what becomes of it" in text
            assert shown in text
        assert not AlertAcknowledgement.objects.exists()

    def test_of_what_is_no_warning_is_a_conflict(self, client: Client, ana: Person) -> None:
        for alert in ("uncredited", "", "job_late:credit_sweep"):
            assert client.post(ACKNOWLEDGE, {"alert": alert, "note": "Seen."}).status_code == 409
        assert not AlertAcknowledgement.objects.exists()

    def test_is_a_reviewers(self, client: Client, account: Account) -> None:
        for role in ("viewer", "judge"):
            client.force_login(get_user_model().objects.get(pk=member(account, role, role).user_id))
            assert "Acknowledge" not in state(client)
            assert client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen."}).status_code == 403
        assert Client().post(ACKNOWLEDGE).status_code == 302
        assert not AlertAcknowledgement.objects.exists()

    def test_is_of_one_account_and_for_the_whole_installation_an_operators(
        self, client: Client, ana: Person, account: Account, operator: Any
    ) -> None:
        client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen here."})
        client.force_login(operator)
        assert "acknowledged" not in state(client), "the installation is another report"
        client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen everywhere."})
        assert "Seen everywhere." in state(client)
        assert list(AlertAcknowledgement.objects.order_by("id").values_list("account", flat=True)) == [account.pk, None]
        with pytest.raises(Forbidden, match="Only an operator"):
            alerts.acknowledge(ana, None, "unreviewed", "Seen.", report())

    def test_of_another_account_is_not_found(self, client: Client, ana: Person, rival_account: Account) -> None:
        sent = {"alert": "unreviewed", "note": "Seen."}
        assert client.post(f"{ACKNOWLEDGE}?account={rival_account.slug}", sent).status_code == 404
        assert not AlertAcknowledgement.objects.exists()

    def test_is_shown_in_the_export(self, client: Client, ana: Person) -> None:
        client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen."})
        told = client.get(f"{HEALTH}health.json").json()["warnings"]
        assert [(reason["code"], said["note"], said["by"]) for reason, said in told["seen"]] == [
            ("unreviewed", "Seen.", "ana")
        ]

    def test_hides_no_error_of_the_dashboard(
        self, client: Client, ana: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise DatabaseError

        monkeypatch.setattr(dashboard, "warnings", fail)
        text = body(client, "/review/")
        assert "The state of the store could not be read." in text
        assert "No. Everything runs on time" not in text


class TestUntil:
    @pytest.fixture
    def acknowledged(self, client: Client, ana: Person, waiting: ReviewItem) -> ReviewItem:
        client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen."})
        assert "1 acknowledged" in state(client)
        return waiting

    def test_it_worsens(self, client: Client, acknowledged: ReviewItem) -> None:
        wait(acknowledged, days=27)
        assert "1 acknowledged" in state(client)
        wait(acknowledged, days=29)
        assert "acknowledged" not in state(client)

    def test_it_gets_better_it_holds(self, client: Client, acknowledged: ReviewItem, ana: Person) -> None:
        wait(acknowledged, days=29)
        client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Still."})
        wait(acknowledged, days=8)
        assert "Still." in state(client)

    def test_four_weeks_are_over(self, client: Client, acknowledged: ReviewItem, account: Account) -> None:
        found, now = report(account.pk).reasons, timezone.now()
        assert "unreviewed" in alerts.seen(account.pk, found, now + timedelta(days=27))
        assert "unreviewed" not in alerts.seen(account.pk, found, now + timedelta(days=29))

    def test_it_is_taken_back(self, client: Client, acknowledged: ReviewItem) -> None:
        answer = client.post(MIND, {"alert": "unreviewed"}, follow=True)
        assert "The warning is shown again." in answer.content.decode()
        assert "acknowledged" not in state(client)
        assert AlertAcknowledgement.objects.count() == 2, "nothing is taken out of the journal"
        assert client.post(MIND, {"alert": "unreviewed"}).status_code == 409

    def test_it_is_about_another_job(self, account: Account, ana: Person) -> None:
        """Of two jobs that are late, one is acknowledged."""
        first, second = sorted(scheduled_jobs())[:2]
        long_ago = timezone.now() - timedelta(days=60)
        for job in (first, second):
            JobRun.objects.create(job=job, started_at=long_ago, finished_at=long_ago, outcome="done")
        made = report(account.pk)
        alerts.acknowledge(ana, account.pk, f"job_late:{first}", "The host is being moved.", made)
        assert set(alerts.seen(account.pk, made.reasons, timezone.now())) == {f"job_late:{first}"}
        with pytest.raises(Conflict):
            alerts.mind_again(ana, account.pk, f"job_late:{second}", timezone.now())


def test_looking_writes_nothing(client: Client, ana: Person, waiting: ReviewItem) -> None:
    body(client)
    assert client.get(ACKNOWLEDGE).status_code == client.get(MIND).status_code == 405
    assert not AlertAcknowledgement.objects.exists()


def test_an_account_that_is_erased_takes_its_acknowledgements_along(
    client: Client, ana: Person, waiting: ReviewItem, account: Account, settings: Any, tmp_path: Any
) -> None:
    settings.SONDER_VAR = str(tmp_path)
    client.post(ACKNOWLEDGE, {"alert": "unreviewed", "note": "Seen."})
    erase("account", account.pk, account_id=None, actor="system")
    assert not AlertAcknowledgement.objects.exists()
