"""The faults seen elsewhere, looked for in the reviewers' pages: two at once, leaked filters, lists that stop."""

import csv
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from memory.models import Account, Adjudication, Contradiction, EmbeddingSpace, Lesson, ReviewItem, TrustEvent
from memory.services import contradiction
from review import digest
from review.models import Look
from tests.acceptance import acts
from tests.acceptance.acts import CLOCK, CURSOR, TIMEOUT
from tests.acceptance.browser import BULK, Browser, at_browser, said
from tests.acceptance.test_people_gateway import ALWAYS, SCOPED, pair_of
from tests.conftest import Agent
from tests.services.near import place

pytestmark = pytest.mark.django_db
INBOX = "/review/inbox/"
MANY = 130


@pytest.fixture
def rita(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "rita.b")


@pytest.fixture
def ben(agent: Agent) -> Browser:
    return at_browser(agent.account, "reviewer", "ben")


def at_once(*acts_of: Callable[[], Any]) -> list[Any]:
    """What each came to, all begun at the same moment, each on a connection of its own."""
    gate = Barrier(len(acts_of))

    def run(act: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=len(acts_of)) as pool:
        return list(pool.map(run, acts_of))


class TestTwoAtOnce:
    """Elsewhere two concurrent adds passed a check that was stale for the second."""

    @pytest.mark.django_db(transaction=True)
    def test_of_two_people_who_word_two_lessons_alike_exactly_one_stores_it(
        self, agent: Agent, rita: Browser, ben: Browser, lesson_scope: str
    ) -> None:
        first, second = (acts.imported(agent.account, text) for text in (CLOCK, CURSOR))
        answers = at_once(
            lambda: rita.decide("edit", first, text=TIMEOUT), lambda: ben.decide("edit", second, text=TIMEOUT)
        )
        assert sorted(answer.status_code for answer in answers) == [302, 422]
        refused = next(answer for answer in answers if answer.status_code == 422)
        assert "another lesson says exactly this" in said(refused)
        assert sorted(Lesson.objects.values_list("state", flat=True)) == ["active", "active", "superseded"]
        assert acts.stored(agent.account, TIMEOUT).state == "active"

    @pytest.mark.django_db(transaction=True)
    def test_of_two_people_with_one_question_one_decides_and_the_other_is_told(
        self, agent: Agent, rita: Browser, ben: Browser, lesson_scope: str
    ) -> None:
        lesson = acts.imported(agent.account, TIMEOUT)
        answers = at_once(lambda: rita.decide("approve", lesson), lambda: ben.decide("reject", lesson))
        assert sorted(answer.status_code for answer in answers) == [302, 409]
        late = next(answer for answer in answers if answer.status_code == 409)
        made = Adjudication.objects.select_related("reviewer").get()
        assert made.reviewer.get_username() in said(late)
        assert Lesson.objects.get().state == {"approve": "active", "reject": "rejected"}[made.verdict]
        assert TrustEvent.objects.count() == 1


class TestALeakedScope:
    """Elsewhere a shared filter object leaked one call's scope into the next."""

    def test_nobodys_filter_and_nobodys_account_shows_in_the_list_of_another(
        self, agent: Agent, rival_account: Account, rita: Browser, ben: Browser, settings: Any
    ) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        eve = at_browser(rival_account, "reviewer", "eve")
        for account, text in ((agent.account, TIMEOUT), (agent.account, CLOCK), (rival_account, CURSOR)):
            ask_about(acts.imported(account, text))
        for _ in range(2):
            assert listed(rita, q="timeout") == {TIMEOUT}
            assert listed(ben) == {TIMEOUT, CLOCK}
            assert listed(eve) == {CURSOR}
            assert listed(eve, q="timeout") == set()
            assert listed(rita) == {TIMEOUT, CLOCK}
        theirs = acts.stored(rival_account, CURSOR)
        for address in (f"/review/lessons/{theirs.pk}/", f"/review/items/{eve.item('vague', theirs).pk}/"):
            assert rita.client.get(address).status_code == 404
            assert eve.client.get(address).status_code == 200
        for browser, own in ((rita, "acme"), (eve, "rival")):
            assert browser.client.get(f"/review/health/?account={own}").status_code == 200
            other = {"acme": "rival", "rival": "acme"}[own]
            assert browser.client.get(f"/review/health/?account={other}").status_code == 404


def ask_about(lesson: Lesson) -> ReviewItem:
    return ReviewItem.objects.create(
        kind="vague", subject=lesson.pk, account=lesson.account, priority=0.2, status="open"
    )


def listed(browser: Browser, **asked: Any) -> set[str]:
    """The lessons of the inbox."""
    shown = browser.page(INBOX, **asked)
    ids = re.findall(r'name="marked" form="marks" value="([0-9a-f-]{36}):', shown)
    return set(Lesson.objects.filter(pk__in=ids).values_list("text", flat=True))


class TestAListThatStops:
    """Elsewhere a list silently stopped at 100."""

    def test_the_inbox_counts_all_and_leads_to_all_each_once(self, agent: Agent, rita: Browser) -> None:
        texts = [f"Call `tool_{n}.run()` before `tool_{n}.close()`, or the run of it is lost." for n in range(MANY)]
        acts.import_texts(agent.account, *texts)
        for lesson in Lesson.objects.all():
            ask_about(lesson)
        seen: list[str] = []
        address: str | None = INBOX
        while address:
            shown = rita.page(address)
            assert re.search(rf'Inbox<span class="count">{MANY}<span', shown)
            seen += re.findall(r'name="marked" form="marks" value="([0-9a-f-]{36}):', shown)
            further = re.search(r'href="([^"]+)">Further down<', shown)
            address = further[1].replace("&amp;", "&") if further else None
        assert len(seen) == len(set(seen)) == MANY

    def test_an_export_of_the_audit_has_every_decision(self, agent: Agent, rita: Browser) -> None:
        texts = [f"Call `tool_{n}.run()` before `tool_{n}.close()`, or the run of it is lost." for n in range(MANY)]
        acts.import_texts(agent.account, *texts)
        marked = [f"{pk}::0" for pk in Lesson.objects.values_list("pk", flat=True)]
        order = {"act": "reject", "marked": marked, "confirmed": "1", "reason_code": "outdated"}
        assert rita.client.post(BULK, order).status_code == 200
        answer = rita.client.get("/review/audit/audit.csv", {"action": "rejected"})
        rows = list(csv.DictReader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines()))
        assert len(rows) == Adjudication.objects.count() + TrustEvent.objects.count() == 2 * MANY


class TestForgottenContentComesBack:
    """Elsewhere a cache, or a writer that had been waiting, brought back what had been forgotten."""

    def test_no_open_page_no_toast_and_no_session_brings_back_what_was_erased(
        self, agent: Agent, rita: Browser, lesson_scope: str
    ) -> None:
        gone, kept = (acts.imported(agent.account, text) for text in (TIMEOUT, CLOCK))
        items = {lesson.pk: ask_about(lesson) for lesson in (gone, kept)}
        for lesson in (gone, kept):
            rita.client.post(f"/review/items/{items[lesson.pk].pk}/skip/")
            rita.did("approve", lesson)
        stale = {"decision": "edit", "subject": gone.pk, "expected_version": 3, "text": f"{TIMEOUT} Always."}
        acts.command("erase", "lesson", str(gone.pk), "--apply")
        assert rita.client.post("/review/decide/", stale).status_code == 404
        form = rita.client.get("/review/decide/edit/", {"subject": gone.pk, "expected_version": 3})
        assert "timeout=30" not in form.content.decode()
        for address in ("/review/", INBOX, "/review/lessons/", "/review/audit/"):
            assert "timeout=30" not in rita.page(address), address
        assert acts.tables_with("timeout=30") == []
        assert acts.tables_naming(gone.pk) == []
        assert "time_machine" in rita.page("/review/lessons/")
        rita.undo()
        assert Adjudication.objects.filter(subject=kept.pk, verdict="undo").exists()


class TestADetectorThatDecides:
    """Elsewhere a detector of contradictions retired true facts by itself."""

    def test_what_a_person_said_of_a_pair_outlives_every_run_until_a_wording_changes(
        self, agent: Agent, rita: Browser, space: EmbeddingSpace
    ) -> None:
        pair = pair_of(agent, space, axis=7)
        for _ in range(2):
            acts.background()
            assert set(Lesson.objects.values_list("state", flat=True)) == {"active"}
        assert "Do these contradict each other?" in rita.page("/review/contradictions/")
        rita.did("not_a_contradiction", pair)
        for _ in range(2):
            contradiction.detect()
            acts.background()
        assert Contradiction.objects.get().verdict == "not_a_contradiction"
        assert "Do these contradict each other?" not in rita.page("/review/contradictions/")
        always = acts.stored(agent.account, ALWAYS)
        rita.did("edit", always, text=SCOPED)
        place(acts.stored(agent.account, SCOPED), space, 0.95, 7)
        contradiction.detect()
        assert Contradiction.objects.filter(verdict=None).count() == 1, "another wording is another pair"
        assert "Do these contradict each other?" in rita.page("/review/contradictions/")
        assert acts.stored(agent.account, SCOPED).state == "active"


class TestAStuckJob:
    """Elsewhere jobs were stuck in "processing" after a restart; here a person may hold a question and vanish."""

    def test_a_question_that_somebody_holds_and_leaves_is_free_again_after_ten_minutes(
        self, agent: Agent, rita: Browser, ben: Browser
    ) -> None:
        item = ask_about(acts.imported(agent.account, TIMEOUT))
        claim = f"/review/items/{item.pk}/claim/"
        assert rita.client.post(claim).status_code == 302
        held = ben.client.post(claim)
        assert held.status_code == 409
        assert "rita.b is reviewing this" in said(held)
        for minutes, status in ((9, 409), (11, 302)):
            ReviewItem.objects.filter(pk=item.pk).update(
                claimed_by=rita.who.user_id, claim_expires_at=Now() + timedelta(minutes=10 - minutes)
            )
            assert ben.client.post(claim).status_code == status
        item.refresh_from_db()
        assert item.claimed_by_id == ben.who.user_id
        ben.client.post("/logout/")
        item.refresh_from_db()
        assert item.claimed_by_id is None


class TestAQueueThatNobodyLooksAt:
    """Elsewhere nobody saw a review queue for weeks."""

    def test_those_who_want_it_are_mailed_until_somebody_has_answered(self, agent: Agent, rita: Browser) -> None:
        item = ask_about(acts.imported(agent.account, TIMEOUT))
        now = timezone.now()
        ReviewItem.objects.filter(pk=item.pk).update(created_at=now - timedelta(days=22))
        digest.run(now)
        assert mail.outbox == [], "nobody is mailed unasked"
        rita.client.post("/review/settings/", {"theme": "auto", "density": "comfortable", "digest": "weekly"})
        assert Look.objects.get().digest == "weekly"
        get_user_model().objects.filter(pk=rita.who.user_id).update(email="rita@example.com")
        digest.run(now)
        (sent,) = mail.outbox
        assert sent.subject == "Sonder: 1 question waits, the oldest for 22 days"
        assert "timeout" not in sent.body
        rita.did("approve", Lesson.objects.get())
        digest.run(now + timedelta(days=7))
        assert len(mail.outbox) == 1
