"""The inbox in the browser: what is listed, the card, what each form does, and what looking must not do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from memory.models import Adjudication, Contradiction, Interaction, Lesson, LessonUsage, Project, ReviewItem
from memory.models.base import new_id
from memory.models.sql import execute
from memory.models.vocabulary import LessonState, ReviewKind, Verdict
from memory.services import quarantine, rejection, review_queue, second_opinion
from memory.services.adjudication import decide
from memory.services.lesson import flag
from memory.services.review_queue import Until
from tests.services.people import decision, member
from tests.services.play import make_callers, make_lessons, serve

INBOX = "/review/inbox/"
TEXT = "Pass `timeout=10` to every `requests.get()` call."
HOSTILE = "<script>alert(1)</script> שלום 🦉 " + "x" * 1900
pytestmark = pytest.mark.django_db


@pytest.fixture
def one(lesson: Callable[..., Lesson]) -> Lesson:
    return lesson(TEXT)


@pytest.fixture
def item(one: Lesson) -> ReviewItem:
    flag(one, ReviewKind.VAGUE)
    return ReviewItem.objects.get()


def page(client: Client, url: str = INBOX) -> str:
    answer = client.get(url)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def many(n: int) -> list[ReviewItem]:
    """So many questions, the first the most urgent."""
    lessons = make_lessons(n)
    ReviewItem.objects.bulk_create(
        ReviewItem(kind="vague", subject=one.pk, status="open", priority=1 - place / n / 2, priority_parts={})
        for place, one in enumerate(lessons)
    )
    return list(ReviewItem.objects.order_by("-priority"))


def value(item: ReviewItem) -> str:
    return f"{item.subject}:{item.pk}:{item.version}"


def at(item: ReviewItem, what: str = "") -> str:
    return f"/review/items/{item.pk}/{what}"


def rows_of_all_tables() -> dict[str, int]:
    tables = (ReviewItem, Lesson, Adjudication, LessonUsage)
    versions = sum(ReviewItem.objects.values_list("version", flat=True))
    claims = ReviewItem.objects.filter(claimed_by__isnull=False).count()
    return {**{table.__name__: table.objects.count() for table in tables}, "versions": versions, "claims": claims}


class TestTheList:
    def test_shows_state_words_provenance_priority_and_who_has_it(self, client, login, account, item) -> None:
        login("reviewer")
        ben = member(account, "reviewer", "ben")
        review_queue.claim(item.pk, ben)
        shown = page(client)
        assert all(words in shown for words in ("Active", "Imported", "0.20", "Vague lesson", "ben is at it"))
        assert "<code>timeout=10</code>" in shown

    def test_the_most_urgent_that_nobody_else_holds_is_on_the_card(self, client, login, account) -> None:
        login("reviewer")
        first, second, _ = many(3)
        review_queue.claim(first.pk, member(account, "reviewer", "ben"))
        assert f'data-claim="{at(second, "claim/")}"' in page(client)

    def test_what_another_holds_can_be_read_and_taken_over(self, client, login, account, item) -> None:
        who = login("reviewer")
        review_queue.claim(item.pk, member(account, "reviewer", "ben"))
        assert "Others are at it" in page(client)
        shown = page(client, f"{INBOX}?item={item.pk}")
        assert "is reviewing this, until" in shown
        assert "Take it over to decide." in shown
        assert "data-claim" not in shown
        client.post(at(item, "claim/"), {"take_over": "1", "next": INBOX})
        assert ReviewItem.objects.get().claimed_by_id == who.user_id

    def test_who_goes_on_is_given_the_next_that_nobody_has_taken_meanwhile(self, client, login, account) -> None:
        login("reviewer")
        first, second, third, last = many(4)
        onward = client.get(INBOX).context["onward"]
        assert onward == f"{INBOX}?item={second.pk}&free=1"
        review_queue.claim(second.pk, member(account, "reviewer", "ben"))
        assert f'data-claim="{at(third, "claim/")}"' in page(client, onward)
        assert "is reviewing this, until" in page(client, f"{INBOX}?item={second.pk}")
        ReviewItem.objects.filter(pk__in=(third.pk, last.pk)).update(status="resolved")
        assert f'data-claim="{at(first, "claim/")}"' in page(client, onward)

    def test_tabs_hold_what_their_names_say(self, client, login, account) -> None:
        who = login("reviewer")
        new, asleep, back, mine, asked, own = many(6)
        ben = member(account, "reviewer", "ben")
        review_queue.snooze(asleep.pk, ben, Until(servings=3))
        review_queue.snooze(back.pk, ben, Until(servings=1))
        ReviewItem.objects.filter(pk=back.pk).update(snoozed_servings=0)
        review_queue.assign(mine.pk, ben, who.user_id)
        second = second_opinion.request(asked.subject, ben)
        requested = second_opinion.request(own.subject, who)

        def listed(tab: str) -> set[Any]:
            shown = page(client, f"{INBOX}?tab={tab}")
            return {each.pk for each in ReviewItem.objects.all() if f":{each.pk}:" in shown}

        assert listed("new") == {new.pk, mine.pk, asked.pk, own.pk}
        assert listed("second") == {second.pk}
        assert listed("returned") == {back.pk}
        assert listed("snoozed") == {asleep.pk}
        assert listed("mine") == {mine.pk, requested.pk}

    def test_filters_stand_in_the_address_and_are_nobody_elses(self, client, login, account, one, lesson) -> None:
        login("reviewer")
        other = lesson("Run `git fetch` before every `git rebase`.")
        project = Project.objects.create(account=account, slug="api", name="API")
        make_callers(account)
        work = serve(account, "fetch", [])
        Interaction.objects.filter(pk=work.pk).update(project=project)
        Lesson.objects.filter(pk=one.pk).update(source_interaction=work.pk)
        flag(one, ReviewKind.VAGUE)
        flag(other, ReviewKind.NEAR_DUPLICATE)
        for query in ("q=timeo", "q=requests.get", f"project={project.pk}", "kind=vague", "q=timeout&kind=vague"):
            shown = page(client, f"{INBOX}?{query}")
            assert (f"{one.pk}:" in shown, f"{other.pk}:" in shown) == (True, False), query
        nothing = page(client, f"{INBOX}?q=nowhere")
        assert "Nothing matches" in nothing
        assert "2 questions without these filters" in nothing
        assert "Nothing matches" in page(client, f"{INBOX}?q=%26%20%27%3A%2A%00")

    def test_another_accounts_questions_are_absent(self, client, login, account, rival_account, settings) -> None:
        settings.SONDER_LESSON_SCOPE = "account"
        login("reviewer", "ron", rival_account)
        (item,) = many(1)
        Lesson.objects.update(account=account)
        ReviewItem.objects.update(account=account)
        assert "Nothing waits" in page(client)
        for url in (
            at(item),
            at(item, "snooze/"),
            at(item, "assign/"),
            at(item, "duplicate/"),
            f"{INBOX}?item={item.pk}",
        ):
            assert client.get(url).status_code == 404, url
        for what in ("claim/", "skip/", "wake/", "comment/", "opinion/"):
            assert client.post(at(item, what), {"expected_version": "1", "decision": "approve"}).status_code == 404, (
                what
            )

    def test_goes_on_where_a_page_ends(self, client, login) -> None:
        login("reviewer")
        items = many(120)
        seen: list[Any] = []
        url = INBOX
        for _ in range(3):
            answer = client.get(url)
            seen += [each["row"].item.pk for each in answer.context["rows"]]
            url = answer.context["further"]
        assert seen == [each.pk for each in items]
        assert url == ""

    @pytest.mark.parametrize("n", [1, 120])
    def test_reads_the_same_few_times_however_much_waits(
        self, client, login, account, one, item, n, django_assert_num_queries
    ) -> None:
        many(n)
        make_callers(account)
        work = serve(account, "Fetch the monthly report", [one])
        Lesson.objects.filter(pk=one.pk).update(source_interaction=work.pk)
        ReviewItem.objects.filter(pk=item.pk).update(priority=1.0)
        for _ in range(n):
            review_queue.comment(one.pk, member(account, "judge", uuid4().hex), "hm")
        login("reviewer")
        pair = sorted([one, *Lesson.objects.exclude(pk=one.pk)[:1]], key=lambda each: each.text_sha256)
        Contradiction.objects.create(
            first=pair[0].pk, second=pair[1].pk, first_digest=pair[0].text_sha256,
            second_digest=pair[1].text_sha256, similarity=0.9, basis="polarity",
        )  # fmt: skip
        with django_assert_num_queries(QUERIES):
            client.get(INBOX)
        with django_assert_num_queries(QUERIES + 2):
            client.get(f"{INBOX}?q=tool&after={item.pk}&item={item.pk}")

    def test_strange_addresses_show_the_inbox(self, client, login, item) -> None:
        login("reviewer")
        for query in ("tab=nonsense", "kind='--", "project=1", "item=x", "after=x", f"after={uuid4()}"):
            assert f"{item.pk}" in page(client, f"{INBOX}?{query}")

    def test_looking_changes_nothing(self, client, login, account, item) -> None:
        login("reviewer")
        second_opinion.request(item.subject, member(account, "reviewer", "ben"))
        before = rows_of_all_tables()
        for url in (
            INBOX, f"{INBOX}?tab=second", f"{INBOX}?item={item.pk}", at(item), at(item, "snooze/"), at(item, "assign/"),
            at(item, "duplicate/"), f"/review/lessons/{item.subject}/second-opinion/",
        ):  # fmt: skip
            page(client, url)
        assert rows_of_all_tables() == before


QUERIES = 22  # and one each for where a page begins and for a question outside the list


class TestTheCard:
    def test_quotes_its_source_where_the_reader_may_see_it(self, client, login, account, rival_account, one) -> None:
        make_callers(account)
        work = serve(account, "Fetch the monthly report", [])
        said = "It hung.\nEvery requests.get() call has a timeout now.\nThe weather was fine."
        Interaction.objects.filter(pk=work.pk).update(response=said)
        Lesson.objects.filter(pk=one.pk).update(source_interaction=work.pk)
        flag(one, ReviewKind.NEW_LESSON)
        login("reviewer")
        shown = page(client)
        assert "Fetch the monthly report" in shown
        assert "Every requests.get() call has a timeout now." in shown
        assert "weather" not in shown
        login("reviewer", "ron", rival_account)
        assert "Fetch the monthly report" not in page(client)

    def test_names_what_is_near_and_what_to_mind(self, client, login, one, lesson, space) -> None:
        login("reviewer")
        other = lesson("Never pass `timeout=10` to any `requests.get()` call.")
        flag(one, ReviewKind.VAGUE)
        flag(one, ReviewKind.NEAR_DUPLICATE)
        ReviewItem.objects.filter(kind="vague").update(priority_parts={"severity": 1.0, "private": 1.0, "reach": 0.1})
        shown = page(client)
        assert f"/review/lessons/{other.pk}/" in shown
        assert "May say the opposite" in shown
        assert all(
            words in shown
            for words in ("It may say nothing concrete", "It is near a lesson that says the same", "something private")
        )
        assert "reach: how much recent work it is in" in page(client, f"{INBOX}?kind=vague")

    def test_text_is_shown_as_text(self, client, login) -> None:
        login("reviewer")
        (item,) = many(1)
        Lesson.objects.update(text=HOSTILE)
        review_queue.comment(item.subject, login("judge"), "<b>no</b>")
        shown = page(client)
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
        assert "<b>no" not in shown

    def test_every_key_is_a_button(self, client, login, item, lesson) -> None:
        login("reviewer")
        lesson("Never pass `timeout=10` to any `requests.get()` call.")
        shown = page(client)
        for key in ("a", "q", "t", "e", "d", "s", "z", "@", "c", "2", "i", "y", "m", "M", "]", "/"):
            assert f'data-key="{key}"' in shown, key

    def test_a_viewer_reads_and_is_told_who_can_change_that(self, client, login, item) -> None:
        login("viewer")
        shown = page(client)
        assert "needs the role reviewer" in shown
        assert "data-claim" not in shown
        assert 'name="marked"' not in shown
        for what, sent in (
            ("claim/", {}), ("snooze/", {"until": "worse"}), ("assign/", {"to": ""}), ("comment/", {"text": "hm"}),
            ("wake/", {}),
        ):  # fmt: skip
            assert client.post(at(item, what), sent).status_code == 403, what

    def test_strangers_log_in_first(self, client, item) -> None:
        for url in (INBOX, at(item)):
            assert client.get(url)["Location"].startswith("/")
            assert "login" in client.get(url)["Location"]


class TestDeciding:
    def sent(self, client: Client, shown: str) -> dict[str, str]:
        start = shown.index('name="decision" value="approve"')
        form = shown[shown.rindex("<form", 0, start) : shown.index("</form>", start)]
        fields = [part.split('"') for part in form.split('<input type="hidden" name=')[1:]]
        return {part[1]: part[3] for part in fields}

    def test_one_key_approves_and_the_next_question_comes(self, client, login) -> None:
        login("reviewer")
        first, second, _ = many(3)
        sent = self.sent(client, page(client))
        answer = client.post("/review/decide/", {**sent, "next": sent["next"].replace("&amp;", "&")})
        assert answer["Location"] == f"{INBOX}?item={second.pk}&free=1"
        assert ReviewItem.objects.get(pk=first.pk).status == "resolved"
        assert "Approved." in page(client, answer["Location"])

    def test_a_candidate_serves_once_it_is_approved(self, client, login, one) -> None:
        quarantine.move(one.pk, LessonState.ACTIVE, LessonState.CANDIDATE)
        flag(one, ReviewKind.NEW_LESSON)
        login("reviewer")
        shown = page(client)
        assert "Pending" in shown
        client.post("/review/decide/", self.sent(client, shown))
        one.refresh_from_db()
        assert (one.state, one.reviewed_by.get_username()) == ("active", "reviewer")

    def test_a_reviewed_lesson_that_has_grown_stale_can_still_be_confirmed(self, client, login, one) -> None:
        who = login("reviewer")
        decide(decision(who, Verdict.APPROVE, one.pk))
        ReviewItem.objects.create(kind="stale", subject=one.pk, status="open", priority=0.3)
        client.post("/review/decide/", self.sent(client, page(client)))
        assert ReviewItem.objects.get().status == "resolved"

    def test_a_late_decision_shows_who_was_faster(self, client, login, account, item) -> None:
        login("reviewer")
        sent = self.sent(client, page(client))
        decide(decision(member(account, "reviewer", "ben"), Verdict.REJECT, item.subject, item))
        answer = client.post("/review/decide/", sent)
        assert answer.status_code == 409
        assert "ben" in answer.content.decode()

    def test_a_duplicate_goes_into_the_lesson_that_is_kept(self, client, login, item, lesson) -> None:
        login("reviewer")
        kept = lesson("Always set `timeout=10` on each `requests.get()` call.")
        shown = page(client, at(item, "duplicate/"))
        assert f'value="{kept.pk}"' in shown
        sent = {
            "decision": "merge", "subject": item.subject, "item": item.pk, "expected_version": item.version,
            "keeper": kept.pk, "reason_code": "clearer", "next": INBOX,
        }  # fmt: skip
        assert client.post("/review/decide/", sent)["Location"] == INBOX
        answer = client.get(at(item))
        assert answer["Location"] == f"/review/lessons/{kept.pk}/"
        assert "has become part of this one" in page(client, answer["Location"])

    def test_all_done_says_what_was_done_today(self, client, login) -> None:
        who = login("reviewer")
        items = many(4)
        for each in items[:3]:
            decide(decision(who, Verdict.APPROVE, each.subject, each))
        client.post(at(items[3], "skip/"), {"next": INBOX})
        moments = [timezone.now().replace(hour=0, minute=0, second=n, microsecond=0) for n in (1, 7, 13)]
        execute("SET session_replication_role = replica")  # the journal is append-only, and this sets its clock
        for made, moment in zip(Adjudication.objects.order_by("created_at"), moments, strict=True):
            Adjudication.objects.filter(pk=made.pk).update(created_at=moment)
        execute("SET session_replication_role = origin")
        shown = page(client)
        assert "All done" in shown
        assert "3 decided, 1 skipped, median 6 s" in shown

    def test_an_empty_store_says_what_the_inbox_is(self, client, login) -> None:
        login("reviewer")
        assert "No questions yet" in page(client)


class TestPuttingAside:
    def test_a_claim_from_the_page_answers_without_a_page(self, client, login, account, item) -> None:
        who = login("reviewer")
        assert client.post(at(item, "claim/"), headers={"X-Hold": "1"}).status_code == 204
        assert ReviewItem.objects.get().claimed_by_id == who.user_id
        assert client.post(at(item, "release/"), headers={"X-Hold": "1"}).status_code == 204
        assert ReviewItem.objects.get().claimed_by is None
        review_queue.claim(item.pk, member(account, "reviewer", "ben"))
        answer = client.post(at(item, "claim/"), headers={"X-Hold": "1"})
        assert (answer.status_code, "ben is reviewing" in answer.content.decode()) == (409, True)

    def test_logging_out_lets_go(self, client, login, item) -> None:
        login("reviewer")
        client.post(at(item, "claim/"))
        client.post("/logout/")
        assert ReviewItem.objects.get().claimed_by is None

    def test_what_is_skipped_stays_away_for_the_session_and_can_be_had_back(self, client, login, item) -> None:
        login("reviewer")
        client.post(at(item, "claim/"))
        assert client.post(at(item, "skip/"), {"next": INBOX})["Location"] == INBOX
        assert ReviewItem.objects.get().claimed_by is None
        shown = page(client)
        assert "0 decided, 1 skipped" in shown
        client.post("/review/inbox/unskip/")
        assert f"{item.pk}" in page(client)

    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            ({"until": "servings", "servings": "7"}, "snoozed_servings"),
            ({"until": "date", "date": f"{timezone.now() + timedelta(days=3):%Y-%m-%d}"}, "snoozed_until"),
            ({"until": "worse"}, "snoozed_s"),
        ],
    )
    def test_a_snooze_leaves_the_queue_and_can_be_cancelled(self, client, login, item, sent, field) -> None:
        login("reviewer")
        assert client.post(at(item, "snooze/"), {**sent, "next": INBOX}).status_code == 302
        found = ReviewItem.objects.get()
        assert (found.status, getattr(found, field) is not None) == ("snoozed", True)
        assert f":{item.pk}:" not in page(client)
        assert "Cancel the snooze" in page(client, f"{INBOX}?tab=snoozed")
        client.post(at(item, "wake/"), {"next": INBOX})
        assert ReviewItem.objects.get().status == "open"

    def test_what_has_come_back_is_listed_before_the_job_has_run(self, client, login, account, one, item) -> None:
        who = login("reviewer")
        make_callers(account)
        review_queue.snooze(item.pk, who, Until(servings=1))
        serve(account, "task", [one])
        shown = page(client, f"{INBOX}?tab=returned")
        assert f":{item.pk}:" in shown
        assert "until it was handed out 1 time" in shown
        assert f":{item.pk}:" not in page(client, f"{INBOX}?tab=snoozed")

    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            ({"until": "servings", "servings": "-1"}, "whole number"),
            ({"until": "servings", "servings": "x"}, "whole number"),
            ({"until": "date", "date": "tomorrow"}, "choose a day"),
            ({"until": "date", "date": "2020-01-01"}, "still to come"),
            ({}, "choose one"),
        ],
    )
    def test_a_wrong_snooze_says_why_and_keeps_what_was_typed(self, client, login, item, sent, said) -> None:
        login("reviewer")
        answer = client.post(at(item, "snooze/"), sent)
        assert (answer.status_code, said in answer.content.decode()) == (422, True)
        if "date" in sent:
            assert f'value="{sent["date"]}"' in answer.content.decode()
        assert ReviewItem.objects.get().status == "open"

    def test_assigning_offers_who_may_answer(self, client, login, account, item) -> None:
        login("reviewer")
        ben, vic = member(account, "reviewer", "ben"), member(account, "viewer", "vic")
        shown = page(client, at(item, "assign/"))
        assert f'value="{ben.user_id}"' in shown
        assert f'value="{vic.user_id}"' not in shown
        client.post(at(item, "assign/"), {"to": ben.user_id, "next": INBOX})
        assert "For ben" in page(client)
        for wrong in (str(vic.user_id), "x", "٣"):
            assert client.post(at(item, "assign/"), {"to": wrong}).status_code == 422

    def test_a_comment_is_seen_by_the_next_and_an_empty_one_is_refused(self, client, login, item) -> None:
        login("reviewer")
        client.post(at(item, "comment/"), {"text": "Seen it fail.", "next": INBOX})
        assert "Seen it fail." in page(client)
        answer = client.post(at(item, "comment/"), {"text": "y" * 2001})
        assert (answer.status_code, "y" * 2001 in answer.content.decode()) == (422, True)

    def test_no_address_of_another_site_is_gone_on_to(self, client, login, item) -> None:
        login("reviewer")
        assert client.post(at(item, "skip/"), {"next": "https://evil.example/"})["Location"] == INBOX


class TestSecondOpinions:
    def test_others_votes_are_absent_until_mine_is_saved(self, client, login, account, one, item) -> None:
        ben = member(account, "reviewer", "ben")
        url = f"/review/lessons/{one.pk}/second-opinion/"
        client.force_login(get_user_model().objects.get(pk=ben.user_id))
        client.post(url, {"decision": "reject", "next": INBOX})
        assert client.post(url, {"decision": ""}).status_code == 409
        asked = ReviewItem.objects.get(kind="second_opinion")
        own = page(client, at(asked))
        assert "You asked for this" in own
        login("reviewer", "ana")
        blind = page(client, f"{INBOX}?tab=second")
        assert "What others think" not in blind
        assert "I would approve" in blind
        assert "Priority <span" not in blind
        assert 'class="primary"' not in blind
        answer = client.post(at(asked, "opinion/"), {"decision": "approve", "expected_version": asked.version})
        shown = page(client, answer["Location"])
        assert "What others think" in shown
        assert all(
            f"<strong>{name}</strong>: {verdict}" in shown for name, verdict in (("ben", "Reject"), ("ana", "Approve"))
        )
        client.force_login(get_user_model().objects.get(pk=ben.user_id))
        assert f":{item.pk}:" in page(client, f"{INBOX}?tab=mine")
        assert Lesson.objects.get(pk=one.pk).state == "active"

    @pytest.mark.parametrize(
        ("sent", "status"),
        [
            ({"decision": "edit", "expected_version": "1"}, 422),
            ({"decision": "approve", "expected_version": "x"}, 422),
            ({"decision": "approve", "expected_version": "9"}, 409),
        ],
    )
    def test_a_wrong_or_late_opinion_is_not_saved(self, client, login, account, one, sent, status) -> None:
        asked = second_opinion.request(one.pk, member(account, "reviewer", "ben"))
        login("reviewer")
        assert client.post(at(asked, "opinion/"), sent).status_code == status
        assert ReviewItem.objects.get().status == "open"

    def test_what_is_out_of_service_needs_no_second_opinion(self, client, login, one) -> None:
        who = login("reviewer")
        rejection.reject(one.pk, reviewer=who.user_id, reason="wrong")
        assert client.get(f"/review/lessons/{one.pk}/second-opinion/").status_code == 409
        assert client.get(f"/review/lessons/{new_id()}/second-opinion/").status_code == 404


class TestThePermalink:
    def test_tells_the_answer_and_lets_decide_anew(self, client, login, account, item) -> None:
        login("reviewer")
        assert "Does this" not in page(client, at(item))
        ben = member(account, "reviewer", "ben")
        decide(decision(ben, Verdict.REJECT, item.subject, item, reason_code="wrong", note="No such call."))
        shown = page(client, at(item))
        assert all(words in shown for words in ("This question has its answer", "ben", "It is wrong", "No such call."))
        assert "Restore" in shown

    def test_a_reworded_lesson_leads_to_its_new_wording(self, client, login, one, item) -> None:
        who = login("reviewer")
        text = "Pass `timeout=5` to every `requests.get()` call."
        made = decide(decision(who, Verdict.EDIT, one.pk, item, data={"text": text}))
        new = Lesson.objects.get(text=text)
        assert made.verdict == "edit"
        assert f"/review/lessons/{new.pk}/" in page(client, at(item))

    def test_other_kinds_lead_to_their_own_page(self, client, login, item) -> None:
        login("reviewer")
        ReviewItem.objects.update(kind="contradiction")
        assert client.get(at(item))["Location"] == f"/review/contradictions/?item={item.pk}"

    def test_nothing_is_nothing(self, client, login, item) -> None:
        login("reviewer")
        assert client.get(f"/review/items/{new_id()}/").status_code == 404
        ReviewItem.objects.update(subject=new_id())
        assert client.get(at(item)).status_code == 404


class TestManyAtOnce:
    def post(self, client: Client, act: str, items: list[ReviewItem], **more: Any) -> Any:
        return client.post("/review/inbox/bulk/", {"act": act, "marked": [value(each) for each in items], **more})

    def test_a_preview_counts_and_names_who_is_left_out_and_changes_nothing(self, client, login, account) -> None:
        login("reviewer")
        items = many(30)
        review_queue.claim(items[2].pk, member(account, "reviewer", "ben"))
        ReviewItem.objects.filter(pk=items[5].pk).update(version=2)
        before = rows_of_all_tables()
        answer = self.post(client, "reject", items)
        shown = answer.content.decode()
        assert (answer.status_code, "Reject: 28 of 30" in shown) == (200, True)
        assert "ben is reviewing it." in shown
        assert "It changed since you looked." in shown
        assert rows_of_all_tables() == before
        done = self.post(
            client, "reject", items, confirmed="1", reason_code="wrong", idempotency_key="k"
        ).content.decode()
        assert "28 of 30 applied" in done
        assert Lesson.objects.filter(state="rejected").count() == 28
        again = self.post(client, "reject", items, confirmed="1", reason_code="wrong", idempotency_key="k")
        assert "28 of 30 applied" in again.content.decode()

    def test_everything_is_undone_and_what_changed_is_named(self, client, login, account) -> None:
        login("reviewer")
        items = many(3)
        self.post(client, "reject", items, confirmed="1", reason_code="wrong")
        decide(decision(member(account, "reviewer", "ben"), Verdict.RESTORE, items[0].subject))
        made = list(Adjudication.objects.filter(verdict="reject").values_list("pk", flat=True))
        shown = client.post("/review/inbox/bulk/undo/", {"made": made}).content.decode()
        assert "2 of 3 undone" in shown
        assert "changed after this decision" in shown
        assert Lesson.objects.filter(state="active").count() == 3
        assert client.post("/review/inbox/bulk/undo/", {"made": ["x"]}).status_code == 422

    def test_a_missing_reason_asks_again_and_keeps_what_was_typed(self, client, login) -> None:
        login("reviewer")
        answer = self.post(client, "reject", many(2), confirmed="1", note="because", idempotency_key="k7")
        shown = answer.content.decode()
        assert answer.status_code == 422
        assert all(words in shown for words in ("choose a reason.", "because", 'value="k7"'))

    def test_many_are_put_off_together(self, client, login) -> None:
        login("reviewer")
        items = many(3)
        assert "Until when?" in self.post(client, "snooze", items).content.decode()
        assert (
            "3 of 3 applied"
            in self.post(client, "snooze", items, confirmed="1", until="servings", servings="4").content.decode()
        )
        assert ReviewItem.objects.filter(status="snoozed").count() == 3

    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            ({"act": "reject"}, "mark at least one row"),
            ({"act": "reject", "marked": ["x"]}, "mark the rows again"),
            ({"act": "reject", "marked": ["burst:a:b"]}, "mark the rows again"),
            ({"act": "destroy", "marked": []}, "choose one of"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, client, login, sent, said) -> None:
        login("reviewer")
        answer = client.post("/review/inbox/bulk/", sent)
        assert (answer.status_code, said in answer.content.decode()) == (422, True)

    def test_a_viewer_decides_nothing(self, client, login) -> None:
        login("viewer")
        done = self.post(client, "reject", many(2), confirmed="1", reason_code="wrong").content.decode()
        assert "0 of 2 applied" in done
        assert Lesson.objects.filter(state="active").count() == 2

    def test_results_that_are_loaded_again_lead_back(self, client, login) -> None:
        login("reviewer")
        assert client.get("/review/inbox/bulk/")["Location"] == INBOX
