"""Webhooks: what happened is told to who wants to hear, at least once, signed, and without a text of anybody's."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from memory.models import (
    Account,
    EmbeddingSpace,
    JobRun,
    Lesson,
    ReviewItem,
    WebhookDelivery,
    WebhookEndpoint,
)
from memory.models.base import told_at
from memory.models.vocabulary import DisabledBecause, LessonState, TrustEventKind
from memory.models.webhook import CHOSEN_EVENTS
from memory.rules.webhooks import DISABLE_AFTER, GIVE_UP_AFTER
from memory.services import contradiction, lesson_verdicts, nudge, quarantine, retention
from memory.services.credit import sweep as credit
from memory.services.erasure import erase
from memory.services.health import report
from memory.services.webhooks import endpoints, lease, review_age, sending
from memory.services.webhooks.transport import Undelivered
from memory.tasks import TASK_OF, maintenance_review_queue, maintenance_webhook, maintenance_webhook_sweep
from tests.markdown import fences
from tests.models.rows import insert
from tests.services.near import place
from tests.services.play import make_callers, say, serve
from tests.services.receiver import Receiver
from tests.services.test_contradiction import ALWAYS, NEVER

pytestmark = pytest.mark.django_db
TEXT = "Set `fsync` to off so that every commit is fast."
REASON = "Nobody may read this reason outside."
PAGE = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"

Make = Callable[..., WebhookEndpoint]


@pytest.fixture
def endpoint(receiver: Receiver) -> Make:
    def make(account: Account | None = None, *events: str, url: str = "") -> WebhookEndpoint:
        made = endpoints.add(
            account_id=account.pk if account else None, url=url or receiver.url, events=events or CHOSEN_EVENTS
        )
        return made.endpoint

    return make


def delivery(endpoint: WebhookEndpoint, **columns: Any) -> UUID:
    """A delivery that waits."""
    row = insert("webhook_delivery", endpoint_id=endpoint.pk, **columns)
    return UUID(str(row["id"]))


def waiting() -> list[tuple[str, UUID]]:
    rows = WebhookDelivery.objects.order_by("pk").values_list("event", "endpoint_id")
    return [(event, endpoint) for event, endpoint in rows]


def of(pk: UUID) -> WebhookDelivery:
    return WebhookDelivery.objects.select_related("endpoint").get(pk=pk)


def make_due(pk: UUID) -> None:
    rows = WebhookDelivery.objects.filter(pk=pk)
    rows.update(next_attempt_at=Now())
    rows.filter(state="claimed").update(lease_expires_at=Now() - timedelta(seconds=1))


class TestEvents:
    def test_a_quarantine_by_evidence_is_told_with_its_figures_and_without_a_text(
        self, account: Account, endpoint: Make, lesson: Callable[..., Lesson], settings: Any, quiet_nudges: Any
    ) -> None:
        settings.CSRF_TRUSTED_ORIGINS = ["https://sonder.example.com"]
        mine, bad, callers = endpoint(account), lesson(TEXT), make_callers(account)
        for n in range(6):
            say(callers["caller"], serve(account, f"a secret task {n}", [bad]).pk, "failed")
        credit()
        assert Lesson.objects.get(pk=bad.pk).state == LessonState.QUARANTINED
        row = WebhookDelivery.objects.get()
        assert (row.endpoint_id, row.event, row.state) == (mine.pk, "lesson.quarantined", "pending")
        assert row.subjects == [bad.pk]
        data = row.body["data"]
        assert (data["lesson"], data["account"], data["by"], data["policy"]) == (
            str(bad.pk), None, "policy", "reference",
        )  # fmt: skip
        assert 0 < data["p_value"] < 1
        assert data["losses"] >= 3
        assert data["page"] == f"https://sonder.example.com/review/lessons/{bad.pk}/"
        told = json.dumps(row.body)
        assert "fsync" not in told
        assert "secret" not in told
        assert set(data) == {"lesson", "account", "by", "policy", "p_value", "wins", "losses", "page"}
        assert row.body["type"] == "lesson.quarantined"
        assert TASK_OF["webhook"] == maintenance_webhook.name

    def test_a_quarantine_by_a_person_is_told_without_their_reason(
        self, endpoint: Make, lesson: Callable[..., Lesson], operator: Any
    ) -> None:
        endpoint()
        lesson_verdicts.quarantine(lesson(TEXT).pk, reviewer=operator.pk, reason=REASON)
        body = WebhookDelivery.objects.get().body
        assert body["data"]["by"] == "person"
        assert REASON not in json.dumps(body)

    def test_a_contradiction_is_told_when_it_is_found_and_not_again(
        self, endpoint: Make, lesson: Callable[..., Lesson], space: EmbeddingSpace
    ) -> None:
        endpoint()
        pair = {place(lesson(text), space, 0.95).pk for text in (ALWAYS, NEVER)}
        for _ in range(2):
            contradiction.detect()
        row = WebhookDelivery.objects.get()
        assert row.event == "contradiction.found"
        data = row.body["data"]
        assert {UUID(each) for each in data["lessons"]} == pair
        assert set(row.subjects) == {*pair, UUID(data["contradiction"])}
        assert data["basis"] == "polarity_only:prohibition"
        assert "fetch" not in json.dumps(row.body)

    def test_each_hears_of_its_own_account_and_of_what_is_shared_and_of_what_it_chose(
        self, account: Account, rival_account: Account, endpoint: Make
    ) -> None:
        everything, mine, theirs = endpoint(), endpoint(account), endpoint(rival_account)
        endpoint(None, "review.late")
        off = endpoint()
        endpoints.disable(off.pk, DisabledBecause.OPERATOR)
        own, shared = (insert("lesson", account_id=who)["id"] for who in (account.pk, None))
        quarantine.journal(own, TrustEventKind.QUARANTINED, {})
        assert {e for _, e in waiting()} == {everything.pk, mine.pk}
        assert all(row.subjects == [own, account.pk] for row in WebhookDelivery.objects.all())
        WebhookDelivery.objects.all().delete()
        quarantine.journal(shared, TrustEventKind.QUARANTINED, {})
        assert {e for _, e in waiting()} == {everything.pk, mine.pk, theirs.pk}

    def test_other_events_of_a_lesson_and_what_a_story_tells_are_no_news(self, endpoint: Make) -> None:
        endpoint()
        lesson = insert("lesson")["id"]
        for kind in TrustEventKind:
            if kind not in (TrustEventKind.QUARANTINED, TrustEventKind.QUARANTINED_BY_REVIEWER):
                quarantine.journal(lesson, kind, {})
        with told_at(timezone.now() - timedelta(days=30)):
            quarantine.journal(lesson, TrustEventKind.QUARANTINED, {})
        assert waiting() == []

    def test_a_delivery_stands_or_falls_with_what_it_tells(self, endpoint: Make) -> None:
        endpoint()
        lesson = insert("lesson")["id"]
        with transaction.atomic():
            quarantine.journal(lesson, TrustEventKind.QUARANTINED, {})
            transaction.set_rollback(True)
        assert waiting() == []

    def test_a_message_makes_it_sooner(self, endpoint: Make, django_capture_on_commit_callbacks: Any) -> None:
        endpoint()
        heard: list[tuple[str, UUID]] = []
        nudge.bind(lambda name, subject: heard.append((name, subject)))
        with django_capture_on_commit_callbacks(execute=True):
            quarantine.journal(insert("lesson")["id"], TrustEventKind.QUARANTINED, {})
        assert heard == [("webhook", WebhookDelivery.objects.get().pk)]


class TestTheReviewQueuesAge:
    def test_is_told_once_each_time_that_it_gets_worse(self, account: Account, endpoint: Make) -> None:
        mine, whole = endpoint(account), endpoint()
        endpoint(account, "lesson.quarantined")
        now = timezone.now()
        item = insert("review_item", account_id=account.pk, created_at=now - timedelta(days=8))["id"]
        assert [review_age.tell(now) for _ in range(3)] == [2, 0, 0]
        states = WebhookDelivery.objects.values_list("endpoint_id", "body__data__state", "body__data__oldest_hours")
        assert set(states) == {(mine.pk, "watch", 192.0), (whole.pk, "watch", 192.0)}
        later = now + timedelta(days=21)
        assert [review_age.tell(later) for _ in range(2)] == [2, 0]
        ReviewItem.objects.filter(pk=item).update(status="resolved")
        assert review_age.tell(later) == 0, "that it was seen to is no news"
        insert("review_item", account_id=account.pk, created_at=later - timedelta(days=9))
        assert [review_age.tell(later) for _ in range(2)] == [2, 0]
        assert [event for event, _ in waiting()] == ["review.late"] * 6

    def test_is_looked_at_by_the_job_of_the_review_queue(self, endpoint: Make) -> None:
        endpoint()
        insert("review_item", created_at=timezone.now() - timedelta(days=8))
        maintenance_review_queue()
        assert JobRun.objects.get(job="review_queue").figures["webhooks_told"] == 1

    def test_of_another_account_is_nobodys_business(
        self, account: Account, rival_account: Account, endpoint: Make
    ) -> None:
        endpoint(account)
        insert("review_item", account_id=rival_account.pk, created_at=timezone.now() - timedelta(days=40))
        assert review_age.tell(timezone.now()) == 0


class TestSending:
    def test_what_arrives_is_verified_by_the_receiver_in_the_document(self, endpoint: Make, receiver: Receiver) -> None:
        made = endpoints.add(account_id=None, url=receiver.url, events=CHOSEN_EVENTS)
        pk = delivery(made.endpoint, body=json.dumps({"type": "lesson.quarantined", "data": {"lesson": "ü"}}))
        assert sending.send(pk) == "delivered"
        (got,) = receiver.received
        (code,) = fences(PAGE.read_text(encoding="utf-8"), "python")
        document: dict[str, Any] = {}
        exec(compile(code, "docs/webhooks.md", "exec"), document)  # the example is what is tested
        verified = document["verified"]
        assert verified(made.secret, got.headers, got.body)
        assert json.loads(got.body) == {"type": "lesson.quarantined", "data": {"lesson": "ü"}}
        assert got.headers["webhook-id"] == str(pk)
        assert got.headers["content-type"] == "application/json"
        other = endpoints.add(account_id=None, url=receiver.url, events=CHOSEN_EVENTS).secret
        old = {**got.headers, "webhook-timestamp": str(int(got.headers["webhook-timestamp"]) - 400)}
        assert not verified(other, got.headers, got.body)
        assert not verified(made.secret, got.headers, got.body + b" ")
        assert not verified(made.secret, {**got.headers, "webhook-id": str(other)}, got.body)
        assert not verified(made.secret, old, got.body)
        row = of(pk)
        assert (row.state, row.last_status, row.attempts, row.claim_token) == ("delivered", 200, 1, None)
        assert row.endpoint.delivered_at is not None

    def test_a_failure_is_tried_again_later_with_the_same_id_and_a_new_signature(
        self, endpoint: Make, receiver: Receiver
    ) -> None:
        pk = delivery(endpoint())
        receiver.says(500)
        assert sending.send(pk) == "pending"
        row = of(pk)
        assert (row.last_status, row.last_error, row.attempts) == (500, "It answered HTTP 500.", 1)
        assert 20 < (row.next_attempt_at - timezone.now()).total_seconds() < 40
        assert row.endpoint.failing_since is not None
        assert sending.send(pk) is None, "it is not due"
        assert sending.send_announced(delivery(row.endpoint)) is None, "a message does not hurry to who fails"
        make_due(pk)
        receiver.forget()
        assert sending.sweep()["delivered"] == 2
        assert of(pk).endpoint.failing_since is None
        assert str(pk) in {got.headers["webhook-id"] for got in receiver.received}

    def test_two_workers_at_once_send_once(
        self, endpoint: Make, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pk = delivery(endpoint())
        post, rivals = sending.post, []

        def meanwhile(*arguments: Any, **named: Any) -> Any:
            rivals.extend([sending.send(pk, "a rival"), sending.sweep("another")["delivered"]])
            return post(*arguments, **named)

        monkeypatch.setattr(sending, "post", meanwhile)
        assert sending.send(pk) == "delivered"
        assert rivals == [None, 0]
        assert len(receiver.received) == 1

    def test_a_worker_that_dies_after_sending_leads_to_a_second_one_with_the_same_id(
        self, endpoint: Make, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pk = delivery(endpoint())

        def die(*_: Any, **__: Any) -> None:
            raise SystemExit

        with monkeypatch.context() as patched:
            patched.setattr(sending, "_delivered", die)
            with pytest.raises(SystemExit):
                sending.send(pk, "dies")
        assert (of(pk).state, sending.sweep()["delivered"]) == ("claimed", 0), "the lease holds"
        make_due(pk)
        maintenance_webhook_sweep()
        assert [got.headers["webhook-id"] for got in receiver.received] == [str(pk)] * 2
        assert (of(pk).state, of(pk).attempts) == ("delivered", 2)

    def test_who_lost_the_lease_records_nothing(self, endpoint: Make) -> None:
        pk = delivery(endpoint())
        first = lease.claim(pk, "first")
        make_due(pk)
        second = lease.claim(pk, "second")
        assert first is not None
        assert second is not None
        assert not lease.finish(first, "failed", status=None)
        assert not lease.give_back(first, 1.0, status=None, error="")
        assert lease.finish(second, "delivered", status=200)

    def test_a_redirect_to_a_clouds_metadata_is_a_failure(self, endpoint: Make, receiver: Receiver) -> None:
        pk = delivery(endpoint())
        receiver.says(302, "Location: http://169.254.169.254/latest/meta-data/iam/")
        assert sending.send(pk) == "pending"
        assert "redirects are not followed" in of(pk).last_error
        assert len(receiver.received) == 1

    def test_an_address_that_is_not_public_any_more_is_not_reached(
        self, endpoint: Make, receiver: Receiver, settings: Any
    ) -> None:
        pk = delivery(endpoint())
        settings.SONDER_WEBHOOK_NETWORKS = ""
        assert sending.send(pk) == "pending"
        assert of(pk).last_error == "Its name leads to 127.0.0.1, which is not public."
        assert receiver.received == []

    def test_nothing_that_the_receiver_says_is_kept(self, endpoint: Make, receiver: Receiver) -> None:
        pk = delivery(endpoint())
        receiver.answer = b"HTTP/1.1 500 your-key-is-4711\r\nX-Key: 4711\r\nContent-Length: 4\r\n\r\n4711"
        sending.send(pk)
        assert "4711" not in of(pk).last_error

    def test_is_given_up_after_three_days(self, endpoint: Make, receiver: Receiver) -> None:
        old = timezone.now() - timedelta(seconds=GIVE_UP_AFTER + 60)
        where = endpoint()
        tried, untried = delivery(where, created_at=old, attempts=9), delivery(where, created_at=old)
        assert lease.fail_old() == 1
        assert [of(pk).state for pk in (tried, untried)] == ["failed", "pending"]
        receiver.says(500)
        assert sending.send(untried) == "failed", "it was due once, and is too old for a second time"
        assert "webhooks_failed" in {reason.code for reason in report().reasons}

    def test_an_endpoint_that_fails_for_days_is_switched_off_and_told_of(
        self, account: Account, endpoint: Make, receiver: Receiver
    ) -> None:
        where = endpoint(account)
        since = timezone.now() - timedelta(seconds=DISABLE_AFTER - 3600)
        WebhookEndpoint.objects.filter(pk=where.pk).update(failing_since=since)
        receiver.says(500)
        first, second = delivery(where), delivery(where)
        sending.send(first)
        assert of(first).endpoint.disabled_at is None
        assert [(r.code, r.state) for r in report(account.pk).reasons if "webhook" in r.code] == [
            ("webhook_failing", "attention")
        ]
        WebhookEndpoint.objects.filter(pk=where.pk).update(failing_since=F("failing_since") - timedelta(hours=2))
        make_due(first)
        sending.send(first)
        assert of(first).endpoint.disabled_because == "failing"
        assert [of(pk).state for pk in (first, second)] == ["cancelled", "cancelled"]
        assert "webhook_disabled" in {reason.code for reason in report(account.pk).reasons}
        endpoints.disable(where.pk, DisabledBecause.OPERATOR)
        assert "webhook_disabled" not in {reason.code for reason in report(account.pk).reasons}
        assert endpoints.enable(where.pk)
        assert not endpoints.enable(where.pk)
        assert of(first).endpoint.failing_since is None

    def test_who_says_that_it_is_gone_is_asked_no_more(self, endpoint: Make, receiver: Receiver) -> None:
        where = endpoint()
        first, second = delivery(where), delivery(where)
        receiver.says(410)
        assert sending.send(first) == "failed"
        assert sending.send(second) is None
        assert of(second).state == "cancelled"
        assert of(first).endpoint.disabled_because == "gone"

    def test_what_was_made_while_its_endpoint_went_off_is_not_sent(self, endpoint: Make, receiver: Receiver) -> None:
        where = endpoint()
        endpoints.disable(where.pk, DisabledBecause.OPERATOR)
        assert sending.send(delivery(where)) == "cancelled"
        assert receiver.received == []

    def test_a_secret_of_another_installation_signs_nothing(
        self, endpoint: Make, receiver: Receiver, settings: Any
    ) -> None:
        where = endpoint()
        settings.SECRET_KEY = "another one, as after a restore without its secret"
        pk = delivery(where)
        assert sending.send(pk) == "failed"
        assert of(pk).last_error == sending.CANNOT_SIGN
        assert receiver.received == []

    def test_one_that_hangs_holds_up_nobody_else(
        self, endpoint: Make, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hanging, sound = endpoint(), endpoint(url=f"{receiver.url}/sound")
        asked: list[str] = []
        post = sending.post

        def slow(target: Any, *arguments: Any, **named: Any) -> Any:
            asked.append(target.path)
            if target.path == "/in":
                raise Undelivered("It did not answer in time.")
            return post(target, *arguments, **named)

        monkeypatch.setattr(sending, "post", slow)
        for where in (hanging, hanging, hanging, sound, sound):
            delivery(where)
        assert sending.sweep() == {"given_up": 0, "delivered": 2, "failed": 1}
        assert sorted(asked) == ["/in", "/in/sound", "/in/sound"]
        assert sending.sweep()["failed"] == 1, "the next sweep tries another one"


class TestWhatBecomesOfDeliveries:
    def test_those_about_a_lesson_go_with_it(
        self, endpoint: Make, lesson: Callable[..., Lesson], space: EmbeddingSpace, settings: Any, tmp_path: Path
    ) -> None:
        settings.SONDER_VAR = str(tmp_path)
        endpoint()
        pair = [place(lesson(text), space, 0.95) for text in (ALWAYS, NEVER)]
        contradiction.detect()
        quarantine.journal(pair[0].pk, TrustEventKind.QUARANTINED, {})
        quarantine.journal(pair[1].pk, TrustEventKind.QUARANTINED, {})
        gone = erase("lesson", pair[0].pk, account_id=None, actor="system")
        assert gone.counts["webhook_delivery"] == 2
        assert [row.subjects for row in WebhookDelivery.objects.all()] == [[pair[1].pk]]

    def test_an_accounts_go_with_it_and_so_do_its_endpoints(
        self, account: Account, rival_account: Account, endpoint: Make, settings: Any, tmp_path: Path
    ) -> None:
        settings.SONDER_VAR = str(tmp_path)
        endpoint(account)
        whole, theirs = endpoint(), endpoint(rival_account)
        quarantine.journal(insert("lesson", account_id=account.pk)["id"], TrustEventKind.QUARANTINED, {})
        delivery(theirs)
        gone = erase("account", account.pk, account_id=None, actor="system")
        assert (gone.counts["webhook_delivery"], gone.counts["webhook_endpoint"]) == (2, 1)
        assert set(WebhookEndpoint.objects.values_list("pk", flat=True)) == {whole.pk, theirs.pk}
        assert waiting() == [("lesson.quarantined", theirs.pk)]

    def test_they_are_kept_for_a_month_once_they_are_done(self, endpoint: Make) -> None:
        where, long_ago = endpoint(), timezone.now() - timedelta(days=31)
        delivery(where, state="delivered", completed_at=long_ago)
        kept = delivery(where, created_at=long_ago)
        assert retention.apply_retention(timezone.now())["webhook_deliveries"] == 1
        assert [row.pk for row in WebhookDelivery.objects.all()] == [kept]


def test_the_secret_is_in_no_column(endpoint: Make, receiver: Receiver) -> None:
    made = endpoints.add(account_id=None, url=receiver.url, events=CHOSEN_EVENTS)
    row = json.dumps(WebhookEndpoint.objects.filter(pk=made.endpoint.pk).values()[0], default=str)
    assert made.secret not in row
    assert made.secret.removeprefix("whsec_") not in row
    assert endpoints.secret_of(made.endpoint).hex() not in row
    again = endpoints.add(account_id=None, url=receiver.url, events=CHOSEN_EVENTS)
    assert again.secret != made.secret
