"""The mail that says how much waits: to whom, when, and that it says no more than that."""

from collections.abc import Callable
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.test import Client
from django.utils import timezone

from memory.models import Account, JobRun, Lesson, ReviewItem
from memory.models.vocabulary import ReviewKind
from memory.services.authority import Person
from memory.services.health import scheduled_jobs
from memory.services.lesson import flag
from review import digest
from review.models import Look
from review.tasks import digest as task
from sonder_site.environment import NO_MAIL, Environment
from tests.models.rows import insert
from tests.services.people import member

pytestmark = pytest.mark.django_db
PAGE = "/review/settings/"
SECRET = "Rotate the key of `vault.prod` before the audit."


def wants(who: Person, often: str, address: str = "ana@example.com") -> Look:
    get_user_model().objects.filter(pk=who.user_id).update(email=address)
    return Look.objects.update_or_create(user_id=who.user_id, defaults={"digest": often})[0]


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def waiting(account: Account, lesson: Callable[..., Lesson]) -> datetime:
    """Three questions, the oldest for five days; returns now."""
    one, now = lesson(SECRET), timezone.now()
    flag(one, ReviewKind.VAGUE)
    flag(one, ReviewKind.NEAR_DUPLICATE)
    insert("review_item", kind="outcome_needed", account_id=account.pk)
    ReviewItem.objects.filter(kind="vague").update(created_at=now - timedelta(days=5, minutes=1))
    return now


class TestTheMail:
    def test_counts_by_queue_with_the_oldest_age_and_says_nothing_of_what_it_is_about(
        self, ana: Person, waiting: datetime, settings: Any
    ) -> None:
        settings.CSRF_TRUSTED_ORIGINS = ["https://sonder.example.com"]
        wants(ana, "daily")
        assert digest.run(waiting) == {"due": 1, "sent": 1, "nothing_waits": 0}
        (sent,) = mail.outbox
        assert (sent.to, sent.from_email) == (["ana@example.com"], settings.DEFAULT_FROM_EMAIL)
        assert sent.subject == "Sonder: 3 questions wait, the oldest for 5 days"
        assert "Inbox: 2, the oldest for 5 days" in sent.body
        assert "Outcomes: 1, the oldest for " in sent.body
        assert "Quarantine" not in sent.body
        assert "https://sonder.example.com/review/" in sent.body
        for word in ("vault", "Rotate", "vague", "near"):
            assert word not in sent.subject + str(sent.body)

    def test_holds_what_the_role_lets_answer_in_the_persons_own_accounts(
        self, account: Account, rival_account: Account, waiting: datetime
    ) -> None:
        insert("review_item", kind="quarantine", account_id=rival_account.pk)
        for role in ("viewer", "judge"):
            wants(member(account, role, role), "daily", f"{role}@example.com")
        wants(member(rival_account, "reviewer", "eve"), "daily", "eve@example.com")
        assert digest.run(waiting) == {"due": 3, "sent": 2, "nothing_waits": 1}
        told = {sent.to[0]: sent.body for sent in mail.outbox}
        assert set(told) == {"judge@example.com", "eve@example.com"}
        assert "Outcomes: 1" in told["judge@example.com"]
        assert "Inbox" not in told["judge@example.com"]
        assert "Quarantine: 1" in told["eve@example.com"], "and the shared lesson's"
        assert "Outcomes" not in told["eve@example.com"]

    def test_is_sent_to_nobody_who_did_not_choose_it(self, account: Account, ana: Person, waiting: datetime) -> None:
        wants(ana, "none")
        wants(member(account, "reviewer", "ben"), "daily", "")
        gone = wants(member(account, "reviewer", "cleo"), "daily")
        get_user_model().objects.filter(pk=gone.user_id).update(is_active=False)
        get_user_model().objects.create_user("dan", email="dan@example.com")
        assert digest.run(waiting) == {"due": 0, "sent": 0, "nothing_waits": 0}
        assert mail.outbox == []

    def test_is_not_sent_where_nothing_waits_and_comes_once_something_does(
        self, ana: Person, lesson: Callable[..., Lesson]
    ) -> None:
        wants(ana, "daily")
        now = timezone.now()
        assert digest.run(now)["nothing_waits"] == 1
        flag(lesson(SECRET), ReviewKind.VAGUE)
        assert digest.run(now + timedelta(hours=1))["sent"] == 1


class TestWhen:
    @pytest.mark.parametrize(("often", "hours"), [("daily", 24), ("weekly", 7 * 24)])
    def test_it_comes_once_in_its_time_however_often_the_job_runs(
        self, ana: Person, waiting: datetime, often: str, hours: int
    ) -> None:
        wants(ana, often)
        for hour, mails in ((0, 1), (1, 1), (hours - 2, 1), (hours, 2), (hours + 1, 2), (2 * hours, 3)):
            digest.run(waiting + timedelta(hours=hour))
            assert len(mail.outbox) == mails, hour

    def test_a_server_that_fails_costs_the_others_nothing_and_is_tried_again(
        self, account: Account, ana: Person, waiting: datetime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wants(ana, "daily")
        wants(member(account, "reviewer", "ben"), "daily", "ben@example.com")
        send = digest.send_mail

        def fail(subject: str, text: str, sender: None, to: list[str]) -> int:
            if to == ["ana@example.com"]:
                raise SMTPException("mailbox full")
            return send(subject, text, sender, to)

        with monkeypatch.context() as patch:
            patch.setattr(digest, "send_mail", fail)
            with pytest.raises(ExceptionGroup, match="1 of 2 mails could not be sent"):
                digest.run(waiting)
        assert [sent.to for sent in mail.outbox] == [["ben@example.com"]]
        digest.run(waiting + timedelta(hours=1))
        assert [sent.to for sent in mail.outbox] == [["ben@example.com"], ["ana@example.com"]]


class TestTheJob:
    def test_has_a_last_run_with_its_figures_like_every_job(self, ana: Person, waiting: datetime) -> None:
        wants(ana, "weekly")
        task()
        run = JobRun.objects.get(job="digest")
        assert (run.outcome, run.figures["sent"]) == ("done", 1)
        assert scheduled_jobs()["digest"] == 3600

    def test_that_fails_is_told(self, ana: Person, waiting: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> int:
            raise ConnectionRefusedError

        monkeypatch.setattr(digest, "send_mail", fail)
        wants(ana, "daily")
        with pytest.raises(ExceptionGroup):
            task()
        assert JobRun.objects.get(job="digest").outcome == "failed"

    def test_does_nothing_without_a_mail_server(self, ana: Person, waiting: datetime, settings: Any) -> None:
        settings.EMAIL_BACKEND = NO_MAIL
        wants(ana, "daily")
        task()
        run = JobRun.objects.get(job="digest")
        assert (run.outcome, run.figures) == ("done", {"off": "EMAIL_URL is not set"})
        assert Look.objects.get().digest_sent_at is None


class TestTheSetting:
    @pytest.fixture
    def page(self, client: Client, ana: Person) -> Client:
        client.force_login(get_user_model().objects.get(pk=ana.user_id))
        return client

    def test_is_off_until_somebody_chooses_it(self, page: Client, ana: Person) -> None:
        get_user_model().objects.filter(pk=ana.user_id).update(email="ana@example.com")
        shown = page.get(PAGE).content.decode()
        assert "To ana@example.com: how many questions wait" in shown
        assert 'name="digest" value="none" id="id_digest_0" checked' in shown
        answer = page.post(PAGE, {"theme": "auto", "density": "comfortable", "digest": "weekly"})
        assert answer.status_code == 302
        assert Look.objects.get().digest == "weekly"

    def test_stays_as_it_is_where_a_form_does_not_have_it(self, page: Client, ana: Person) -> None:
        wants(ana, "weekly")
        page.post(PAGE, {"theme": "dark", "density": "comfortable"})
        assert (Look.objects.get().digest, Look.objects.get().theme) == ("weekly", "dark")

    def test_is_refused_where_it_is_none(self, page: Client) -> None:
        answer = page.post(PAGE, {"theme": "auto", "density": "comfortable", "digest": "hourly"})
        assert answer.status_code == 422
        assert not Look.objects.exists()

    def test_says_what_is_missing(self, page: Client, settings: Any) -> None:
        assert "Your login has no address" in page.get(PAGE).content.decode()
        settings.EMAIL_BACKEND = NO_MAIL
        shown = page.get(PAGE).content.decode()
        assert "No mail server is set up." in shown
        assert '<fieldset class="reasons stack" disabled>' in shown


class TestTheAddress:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("smtp+tls://ana:p%40ss@mail.example.com", ("mail.example.com", 587, "ana", "p@ss", True, False)),
            ("smtp+ssl://mail.example.com", ("mail.example.com", 465, "", "", False, True)),
            ("smtp://localhost:1025", ("localhost", 1025, "", "", False, False)),
        ],
    )
    def test_is_read_with_the_usual_port_of_its_kind(self, url: str, expected: tuple[object, ...]) -> None:
        found = Environment({"EMAIL_URL": url}).mail("EMAIL_URL")
        names = ("HOST", "PORT", "HOST_USER", "HOST_PASSWORD", "USE_TLS", "USE_SSL")
        assert tuple(found[f"EMAIL_{name}"] for name in names) == expected

    def test_that_is_not_set_sends_nothing(self) -> None:
        assert Environment({}).mail("EMAIL_URL") == {"EMAIL_BACKEND": NO_MAIL}
