"""The first page: whose turn it is, what waits, what others did, whether anything is on fire."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.models import (
    Account,
    JobRun,
    Lesson,
    LessonStanding,
    Outcome,
    Preference,
    ReviewItem,
    TrustEvent,
)
from memory.models.base import new_id
from memory.services.authority import Person
from review.models import Look
from review.queries.dashboard import decidable
from review.views import dashboard
from tests.models.rows import insert
from tests.services.people import member
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script> \u202eאבג 😀 " + "x" * 1900
QUERIES = 25  # of the page, whatever it shows


def logged_in(client: Client, who: Person) -> Client:
    client.force_login(get_user_model().objects.get(pk=who.user_id))
    return client


def body(client: Client, **asked: str) -> str:
    answer = client.get("/review/", asked)
    assert answer.status_code == 200
    return answer.content.decode()


def question(kind: str, subject: Any, priority: float = 0.5, **more: Any) -> ReviewItem:
    return ReviewItem.objects.create(kind=kind, subject=subject, priority=priority, status="open", **more)


@pytest.fixture
def ana(account: Account) -> Person:
    return member(account, "reviewer", "ana")


@pytest.fixture
def page(client: Client, ana: Person) -> Client:
    return logged_in(client, ana)


class TestWhoMayDecide:
    def test_a_viewer_has_no_question_and_a_reviewer_has_this_one(self, account: Account, ana: Person) -> None:
        found = question("vague", new_id())
        vic = member(account, "viewer", "vic")
        assert list(ReviewItem.objects.filter(decidable(vic))) == []
        assert list(ReviewItem.objects.filter(decidable(ana))) == [found]


class TestWhoMayLook:
    def test_a_stranger_logs_in_first(self, client: Client) -> None:
        assert client.get("/review/").headers["Location"] == "/login/?next=/review/"

    def test_who_has_no_role_is_told_who_can_give_one(self, client: Client, operator: Any, account: Account) -> None:
        client.force_login(get_user_model().objects.create_user("nina"))
        answer = client.get("/review/")
        assert answer.status_code == 403
        text = answer.content.decode()
        assert "You have no role yet" in text
        assert "olive" in text
        assert "Your turn" not in text

    def test_who_has_no_role_is_told_so_where_nobody_runs_the_store(self, client: Client) -> None:
        client.force_login(get_user_model().objects.create_user("nina"))
        assert "can give you a role." in client.get("/review/").content.decode()

    def test_another_account_is_not_among_ones_own(self, page: Client, rival_account: Account) -> None:
        assert page.get("/review/", {"account": "rival"}).status_code == 404

    def test_a_member_of_two_accounts_sees_the_first_and_may_name_the_other(
        self, page: Client, ana: Person, rival_account: Account
    ) -> None:
        insert("membership", account_id=rival_account.pk, user_id=ana.user_id, role="viewer")
        assert "Acme" in body(page)
        assert 'health/?account=rival"' in body(page, account="rival")


class TestYourTurn:
    def test_is_the_most_urgent_question_with_its_key(self, page: Client) -> None:
        low, high = make_lessons(2)
        question("new_lesson", low.pk, 0.2)
        urgent = question("quarantine", high.pk, 0.9)
        text = body(page)
        assert "Prefer <code>tool_1()</code> over writing" in text
        (start,) = re.findall(r'href="([^"]+)" data-key="n"', text)
        assert start == reverse("review:lesson", args=[urgent.subject])
        assert "The most urgent question that your role lets you answer." in text

    @pytest.mark.parametrize(
        ("kind", "queue"),
        [("new_lesson", "inbox"), ("contradiction", "contradictions"), ("outcome_needed", "outcomes")],
    )
    def test_leads_to_the_queue_of_its_kind(self, page: Client, kind: str, queue: str) -> None:
        item = question(kind, new_id())
        assert f'href="{reverse(f"review:{queue}")}?item={item.pk}" data-key="n"' in body(page)

    def test_tells_what_it_is_about_for_each_kind_of_subject(self, page: Client, account: Account) -> None:
        first, second = make_lessons(2)
        pair = insert("contradiction", first=first.pk, second=second.pk, account_id=None)
        question("contradiction", pair["id"])
        assert "tool_0()" in body(page)
        ReviewItem.objects.all().delete()
        make_callers(account)
        question("outcome_needed", serve(account, "Paint the fence", []).pk, account=account)
        assert "Paint the fence" in body(page)
        ReviewItem.objects.all().delete()
        question("vague", new_id())
        assert "What it was about is gone." in body(page)

    def test_begins_with_what_i_have_open_then_what_is_mine_then_what_a_colleague_asks(
        self, page: Client, ana: Person, account: Account
    ) -> None:
        ben = member(account, "reviewer", "ben")
        soon = timezone.now() + timedelta(minutes=5)
        question("vague", new_id(), 0.9)
        asked = question("second_opinion", new_id(), 0.1, requested_by_id=ben.user_id)
        assert "ben asks for a second opinion." in body(page)
        mine = question("stale", new_id(), 0.1, assigned_to_id=ana.user_id)
        assert "It is assigned to you." in body(page)
        ReviewItem.objects.filter(pk=asked.pk).update(claimed_by=ana.user_id, claim_expires_at=soon)
        text = body(page)
        assert "You have it open." in text
        assert "Go on" in text
        assert mine.pk != asked.pk

    def test_is_not_what_others_hold_or_were_given_or_what_i_asked_others(
        self, page: Client, ana: Person, account: Account
    ) -> None:
        ben = member(account, "reviewer", "ben")
        soon = timezone.now() + timedelta(minutes=5)
        question("vague", new_id(), claimed_by_id=ben.user_id, claim_expires_at=soon)
        question("stale", new_id(), assigned_to_id=ben.user_id)
        question("second_opinion", new_id(), requested_by_id=ana.user_id)
        text = body(page)
        assert "Others hold what is left" in text
        assert "ben is reviewing" in text

    def test_a_hold_that_has_ended_holds_nothing(self, page: Client, account: Account) -> None:
        ben = member(account, "reviewer", "ben")
        past = timezone.now() - timedelta(minutes=1)
        question("vague", new_id(), claimed_by_id=ben.user_id, claim_expires_at=past)
        assert 'data-key="n"' in body(page)

    def test_is_never_a_question_of_another_account(self, page: Client, rival_account: Account) -> None:
        question("vague", new_id(), account=rival_account)
        text = body(page)
        assert "Nothing waits for you" in text
        assert 'data-key="n"' not in text

    def test_of_a_judge_is_an_outcome_and_never_a_lesson(self, client: Client, account: Account) -> None:
        page = logged_in(client, member(account, "judge", "joe"))
        question("vague", new_id(), 0.9)
        assert "Nothing waits for you" in body(page)
        question("outcome_needed", new_id(), 0.1, account=account)
        assert "Outcome to judge" in body(page)

    def test_a_viewer_reads_and_is_told_who_can_change_that(self, client: Client, account: Account) -> None:
        page = logged_in(client, member(account, "viewer", "vic"))
        question("vague", new_id())
        text = body(page)
        assert "You read here" in text
        assert 'data-key="n"' not in text

    def test_all_done_says_what_i_did_today(self, page: Client, ana: Person) -> None:
        insert("adjudication", reviewer_id=ana.user_id, verdict="approve", idempotency_key="")
        assert "You decided 1 today." in body(page)


class TestQueues:
    def test_have_their_size_and_oldest_age_and_what_is_in_hand(self, page: Client, account: Account) -> None:
        ben = member(account, "reviewer", "ben")
        soon = timezone.now() + timedelta(minutes=5)
        old = question("vague", new_id())
        ReviewItem.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=3))
        question("stale", new_id(), claimed_by_id=ben.user_id, claim_expires_at=soon)
        text = re.sub(r"<[^>]+>", " ", body(page))
        assert re.search(r"Inbox\s+2\s+oldest\s+3 days ago\s*,\s*1 in hand", text.replace("\xa0", " "))

    def test_are_all_there_when_empty(self, page: Client) -> None:
        assert body(page).count(">empty<") == 4

    def test_count_nothing_of_another_account(self, page: Client, rival_account: Account) -> None:
        question("vague", new_id(), account=rival_account)
        assert body(page).count(">empty<") == 4


class TestNews:
    def happened(self, lesson: Lesson, kind: str = "quarantined", actor: str = "system") -> TrustEvent:
        return TrustEvent.objects.create(lesson=lesson.pk, kind=kind, actor=actor)

    def test_tells_what_others_did_and_not_what_i_did(self, page: Client, ana: Person, account: Account) -> None:
        ben = member(account, "reviewer", "ben")
        (lesson,) = make_lessons(1)
        self.happened(lesson, "released_by_reviewer", ben.actor)
        self.happened(lesson, "quarantined_by_reviewer", ana.actor)
        self.happened(lesson, "trial_opened")
        text = body(page)
        assert "Released by ben" in text
        assert "Quarantined by a person" not in text
        assert "Put on trial" not in text

    def test_tells_of_a_preference_that_was_rolled_back(self, page: Client, account: Account) -> None:
        preference = Preference.objects.get(pk=insert("preference", account_id=account.pk)["id"])
        first = insert("refinement_history", preference_id=preference.pk)
        insert("refinement_history", preference_id=preference.pk, operation="rollback", parent_id=first["id"])
        text = body(page)
        assert "Preference rolled back" in text
        assert reverse("review:preference", args=[preference.pk]) in text

    def test_tells_nothing_of_another_account(self, page: Client, rival_account: Account) -> None:
        (lesson,) = make_lessons(1)
        Lesson.objects.filter(pk=lesson.pk).update(account=rival_account)
        preference = insert("preference", account_id=rival_account.pk)
        first = insert("refinement_history", preference_id=preference["id"])
        insert("refinement_history", preference_id=preference["id"], operation="rollback", parent_id=first["id"])
        self.happened(lesson)
        assert "Nobody else quarantined" in body(page)

    def test_a_dismissed_notice_stays_away_and_the_others_stay(self, page: Client) -> None:
        one, two = make_lessons(2)
        gone, _ = self.happened(one), self.happened(two)
        page.post("/review/dismiss/", {"notice": gone.pk})
        text = body(page)
        assert "tool_0()" not in text
        assert "tool_1()" in text

    def test_marking_all_as_seen_starts_the_next_look_there(self, page: Client, ana: Person) -> None:
        one, two = make_lessons(2)
        self.happened(one)
        (until,) = re.findall(r'name="until" value="([^"]+)"', body(page))
        assert page.post("/review/seen/", {"until": until}).status_code == 302
        assert "Nobody else quarantined" in body(page)
        self.happened(two)
        text = body(page)
        assert "tool_1()" in text
        assert "tool_0()" not in text

    def test_a_look_never_moves_back_nor_into_the_future(self, page: Client, ana: Person) -> None:
        now = timezone.now()
        page.post("/review/seen/", {"until": (now + timedelta(days=9)).isoformat()})
        seen = Look.objects.get(user=ana.user_id).last_visit
        assert seen is not None
        assert seen <= timezone.now()
        page.post("/review/seen/", {"until": (now - timedelta(days=9)).isoformat()})
        assert Look.objects.get(user=ana.user_id).last_visit == seen

    @pytest.mark.parametrize("until", ["", "yesterday", "2026-02-31T00:00:00+00:00", "2026-01-01T00:00:00"])
    def test_what_is_no_moment_is_refused(self, page: Client, until: str) -> None:
        assert page.post("/review/seen/", {"until": until}).status_code == 422

    def test_what_is_no_notice_is_refused(self, page: Client) -> None:
        assert page.post("/review/dismiss/", {"notice": "x"}).status_code == 422

    def test_more_than_fit_lead_to_the_log(self, page: Client) -> None:
        (lesson,) = make_lessons(1)
        for _ in range(9):
            self.happened(lesson)
        assert "3 more in the audit log" in body(page)


class TestTheState:
    def test_says_the_worst_first_and_links_to_the_figures(self, page: Client, account: Account) -> None:
        Account.objects.filter(pk=account.pk).update(created_at=timezone.now() - timedelta(days=30))
        text = body(page)
        assert "Needs attention" in text
        assert "has never run well" in text
        assert reverse("review:health") in text

    def test_tells_when_the_detectors_ran_and_what_people_overturned(self, page: Client) -> None:
        (lesson,) = make_lessons(1)
        JobRun.objects.create(job="credit_sweep", finished_at=timezone.now(), outcome="done")
        for kind in ("upheld", "upheld", "released_by_reviewer"):
            TrustEvent.objects.create(lesson=lesson.pk, kind=kind, actor="system")
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body(page))).replace("\xa0", " ")
        assert "Last detector run just now" in text
        assert "overturned 1 of 3" in text

    @pytest.mark.parametrize(("n", "words"), [(29, "too few n = 29"), (30, "97% n = 30")])
    def test_gives_an_agreement_from_thirty_on(self, page: Client, account: Account, n: int, words: str) -> None:
        callers = make_callers(account)
        for i in range(n):
            work = serve(account, f"task {i}", [])
            say(callers["caller"], work.pk, "accepted")
            say(callers["machine"], work.pk, "failed" if i == 0 else "tests_passed")
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body(page)))
        assert words in text

    def test_one_failed_tile_leaves_the_others(
        self, page: Client, monkeypatch: pytest.MonkeyPatch, account: Account
    ) -> None:
        def fail(*_: object) -> None:
            raise DatabaseError("gone")

        make_lessons(1)
        for name, words in {
            "report": "The state of the store could not be read.",
            "agreement": "could not be read",
            "_queues": "The queues could not be read.",
            "_news": "What others did could not be read.",
            "_turn": "What waits for you could not be read.",
        }.items():
            with monkeypatch.context() as patch:
                patch.setattr(dashboard, name, fail)
                text = body(page)
            assert words in text, name
            assert "Nothing waits for you" in text or name == "_turn"
            assert ">empty<" in text or name == "_queues"


class TestFirstUse:
    def test_offers_demo_data_and_an_agent(self, page: Client) -> None:
        text = body(page)
        assert "python manage.py seed_demo" in text
        assert "http://testserver/api/v1/interactions/" in text

    def test_is_over_with_the_first_lesson(self, page: Client) -> None:
        make_lessons(1)
        assert "seed_demo" not in body(page)


class TestThePage:
    def fill(self, account: Account, lessons: int) -> None:
        callers = make_callers(account)
        for i, lesson in enumerate(make_lessons(lessons)):
            LessonStanding.objects.create(lesson=lesson, policy="trial", wins=0, losses=1, on_trial=True, version=1)
            question("vague", lesson.pk, account=account)
            TrustEvent.objects.create(lesson=lesson.pk, kind="quarantined", actor=f"user:{i}")
            work = serve(account, f"task {i}", [lesson])
            say(callers["caller"], work.pk, "failed")

    @pytest.mark.parametrize("lessons", [1, 40])
    def test_takes_the_same_queries_at_any_size(
        self, page: Client, account: Account, lessons: int, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        self.fill(account, lessons)
        page.get("/review/")  # warms up what is read once a process
        with django_assert_num_queries(QUERIES):
            page.get("/review/")

    def test_writes_nothing(self, page: Client, account: Account, ana: Person) -> None:
        self.fill(account, 2)
        before = (ReviewItem.objects.order_by("pk").values_list(), TrustEvent.objects.count(), Outcome.objects.count())
        rows = list(before[0])
        page.get("/review/")
        assert list(ReviewItem.objects.order_by("pk").values_list()) == rows
        assert (TrustEvent.objects.count(), Outcome.objects.count()) == before[1:]
        assert not Look.objects.exists()

    def test_escapes_what_others_wrote(self, page: Client, account: Account) -> None:
        (lesson,) = make_lessons(1)
        Lesson.objects.filter(pk=lesson.pk).update(text=HOSTILE)
        question("vague", lesson.pk)
        TrustEvent.objects.create(lesson=lesson.pk, kind="quarantined", actor="system")
        text = body(page)
        assert text.count("&lt;script&gt;alert(1)&lt;/script&gt; \u202eאבג 😀") == 2
        assert "<script>alert" not in text
