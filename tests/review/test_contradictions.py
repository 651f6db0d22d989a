"""Deciding about lessons that may contradict each other, in the browser."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Adjudication, Contradiction, EmbeddingSpace, Lesson, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import contradiction, rejection
from memory.services.adjudication import decide
from memory.services.credit import sweep
from tests.review.script import claim
from tests.services.near import place, state_of
from tests.services.people import decision, member
from tests.services.play import make_callers, say, serve

pytestmark = pytest.mark.django_db

ALWAYS = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
ONE = "Retry `fetch()` after a timeout only where the call is idempotent."
QUEUE = "/review/contradictions/"


@pytest.fixture
def opposites(lesson: Callable[..., Lesson], space: EmbeddingSpace) -> tuple[Lesson, Lesson]:
    return place(lesson(ALWAYS), space, 0.95), place(lesson(NEVER), space, 0.95)


@pytest.fixture
def pair(opposites: tuple[Lesson, Lesson]) -> Contradiction:
    contradiction.detect()
    return Contradiction.objects.get()


def page(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def text_of(lesson: Any) -> str:
    return str(Lesson.objects.get(pk=lesson).text)


def form(shown: str, verdict: str) -> str:
    """Where the page asks how a verdict is meant."""
    found = re.search(rf'href="({reverse("review:ask", args=[verdict])}[^"]+)"', shown)
    assert found is not None, verdict
    return html.unescape(found[1])


def at(pair: Contradiction) -> str:
    return reverse("review:contradiction", args=[pair.pk])


def settle(client: Client, pair: Contradiction, verdict: str, reason: str = "other", **more: Any) -> Any:
    item = ReviewItem.objects.filter(subject=pair.pk).latest("created_at")
    sent = {
        "decision": verdict, "subject": pair.pk, "item": item.pk, "expected_version": item.version,
        "reason_code": reason, "idempotency_key": verdict, "next": QUEUE, **more,
    }  # fmt: skip
    return client.post("/review/decide/", sent)


class TestThePair:
    def test_both_stand_side_by_side_with_their_differing_words_marked(self, client, login, pair) -> None:
        login("reviewer")
        shown = page(client, QUEUE)
        assert shown.count('<mark class="differs">') == 2
        assert ">only in A: </span>" in shown
        assert ">only in B: </span>" in shown
        assert all(f'data-key="{key}"' in shown for key in ("1", "2", "3", "4", "5", "s"))

    def test_records_and_overlap_come_from_real_servings(self, client, login, pair, account) -> None:
        callers = make_callers(account)
        first, second = Lesson.objects.get(pk=pair.first), Lesson.objects.get(pk=pair.second)
        works = {"Both were here": [first, second], "alone": [first], "again": [second]}
        for task, lessons in works.items():
            signal = "accepted" if len(lessons) == 2 else "failed"
            say(callers["caller"], serve(account, task, lessons).pk, signal)
        sweep()
        login("reviewer")
        shown = page(client, at(pair))
        assert "Served together in 1 of 3 interactions: only A 1, both 1, only B 1." in shown
        assert shown.count("1 of 2, plausibly 9% to 91%") == 2
        assert "Both were here" in shown

    def test_the_detectors_score_is_absent_until_the_verdict(self, client, login, pair) -> None:
        login("reviewer")
        Contradiction.objects.filter(pk=pair.pk).update(similarity=0.8765)
        for url in (QUEUE, at(pair)):
            shown = page(client, url)
            assert "0.88" not in shown
            assert "polarity" not in shown
        settle(client, pair, "keep_both", "different_scope", note="one for reads")
        shown = page(client, at(pair))
        assert "0.88" in shown
        assert pair.basis in shown
        assert "one for reads" in shown
        assert "Each is right in its own place" in shown

    def test_a_set_of_three_is_shown_as_one(self, client, login, opposites, lesson, space) -> None:
        place(lesson("Do not retry `fetch()` when it fails with a timeout."), space, 0.95)
        contradiction.detect()
        assert Contradiction.objects.count() == 2
        login("reviewer")
        shown = page(client, QUEUE)
        assert "Part of a set of 3" in shown
        offered = ReviewItem.objects.get(pk=claim(client, shown))
        other = Contradiction.objects.exclude(pk=offered.subject).get()
        assert at(other) in shown

    def test_after_a_verdict_within_a_set_the_rest_of_it_comes_before_more_urgent_pairs(
        self, client, login, opposites, pair, lesson, space
    ) -> None:
        place(lesson("Do not retry `fetch()` when it fails with a timeout."), space, 0.95)
        for text in ("Always close `fetch()` after a read.", "Never close `fetch()` after a read."):
            place(lesson(text), space, 0.95, axis=1)
        contradiction.detect()
        ReviewItem.objects.exclude(subject=pair.pk).filter(
            subject__in=Contradiction.objects.filter(first__in=Lesson.objects.filter(text__contains="close")).values(
                "pk"
            )
        ).update(priority=0.9)
        login("reviewer")
        onward = f"{QUEUE}?after={pair.pk}"
        assert settle(client, pair, "not_a_contradiction", "detector", next=onward).url == onward
        assert "close" not in page(client, onward).split("Work that was handed both")[0]
        assert "close" in page(client, QUEUE)
        assert client.get(f"{QUEUE}?after=nonsense").status_code == 200

    def test_hostile_text_is_escaped(self, client, login, pair) -> None:
        Lesson.objects.filter(pk=pair.first).update(text="<script>alert(1)</script> \u202eאבג 😀 " + "x" * 1900)
        login("viewer")
        shown = page(client, at(pair))
        assert "<script>alert" not in shown
        assert "alert" in shown


class TestDeciding:
    @pytest.mark.parametrize(("verdict", "loser"), [("keep_first", "second"), ("keep_second", "first")])
    def test_the_loser_is_rejected_with_a_link_and_not_deleted(self, client, login, pair, verdict, loser) -> None:
        login("reviewer")
        assert settle(client, pair, verdict, "more_right").url == QUEUE
        assert state_of(getattr(pair, loser)) == "rejected"
        assert "No open contradiction" in page(client, QUEUE)
        assert reverse("review:lesson", args=[getattr(pair, loser)]) in page(client, at(pair))

    def test_a_loser_needs_a_reason_and_what_was_typed_stays(self, client, login, pair) -> None:
        login("reviewer")
        refused = settle(client, pair, "keep_first", "", note="because of this")
        assert refused.status_code == 422
        assert "because of this" in refused.content.decode()
        assert state_of(pair.second) == "active"

    def test_no_contradiction_survives_the_next_run_of_the_detector(self, client, login, pair) -> None:
        login("reviewer")
        settle(client, pair, "not_a_contradiction", "detector")
        found = contradiction.detect()
        assert (found.pairs, found.raised) == (1, 0)
        assert Contradiction.objects.get().verdict == "not_a_contradiction"
        assert ReviewItem.objects.get().status == "resolved"
        assert "No open contradiction" in page(client, QUEUE)

    def test_after_an_edit_the_pair_returns_with_the_difference_and_the_earlier_verdict(
        self, client, login, opposites, pair, space
    ) -> None:
        ana = login("reviewer", "ana")
        settle(client, pair, "not_a_contradiction", "detector", note="about two different calls")
        written = rejection.supersede(opposites[1].pk, NEVER.replace("fails", "ends"), reviewer=ana.user_id)
        assert written.lesson is not None, written.verdict
        place(written.lesson, space, 0.95)
        assert contradiction.detect().raised == 1
        shown = page(client, QUEUE)
        assert "was replaced by an edited lesson" in shown
        assert "<del>" in shown
        assert "<ins>" in shown
        assert "about two different calls" in shown
        assert at(pair) in shown

    def test_what_a_colleague_decided_meanwhile_is_told_and_nothing_is_done_twice(
        self, client, login, pair, account
    ) -> None:
        item = ReviewItem.objects.get()
        kim = member(account, "reviewer", "kim")
        decide(decision(kim, Verdict.KEEP_FIRST, pair.pk, item, reason_code="newer"))
        login("reviewer", "ana")
        late = settle(client, pair, "keep_second", "newer", expected_version=item.version)
        assert late.status_code == 409
        assert "kim" in late.content.decode()
        assert (state_of(pair.first), state_of(pair.second)) == ("active", "rejected")

    @pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.QUARANTINE])
    def test_what_a_colleague_decided_about_one_of_the_two_is_told(self, client, login, pair, account, verdict) -> None:
        item = ReviewItem.objects.get()
        kim = member(account, "reviewer", "kim")
        decide(decision(kim, verdict, pair.second, reason_code="outdated"))
        login("reviewer", "ana")
        late = settle(client, pair, "merge_both", "", expected_version=item.version, text=ONE)
        shown = late.content.decode()
        assert late.status_code == 409
        assert f"<strong>kim</strong> decided “{verdict.label}” about B" in shown
        assert ONE in shown
        assert at(pair) in shown
        assert ("Merge all the same" in shown) == (verdict == Verdict.QUARANTINE)
        assert not Lesson.objects.filter(text=ONE).exists()

    def test_a_verdict_can_be_undone_and_is_asked_again(self, client, login, pair) -> None:
        login("reviewer")
        settle(client, pair, "keep_first", "newer")
        client.post("/review/undo/", {"adjudication": Adjudication.objects.get().pk})
        assert state_of(pair.second) == "active"
        assert "Do these contradict each other?" in page(client, QUEUE)

    def test_a_merge_begins_with_both_wordings_and_ends_with_one_lesson(self, client, login, pair) -> None:
        login("reviewer")
        asked = page(client, form(page(client, QUEUE), "merge_both"))
        assert f"{text_of(pair.first)}\n{text_of(pair.second)}</textarea>" in asked.replace("&#x27;", "'")
        assert "reason_code" not in asked
        answer = settle(client, pair, "merge_both", "", text=ONE)
        assert answer.status_code in (302, 303)
        made = Lesson.objects.get(text=ONE)
        shown = page(client, at(pair))
        assert reverse("review:lesson", args=[made.pk]) in shown
        assert "took the place of both" in shown
        history = page(client, reverse("review:lesson", args=[made.pk]))
        for side in (pair.first, pair.second):
            assert reverse("review:lesson", args=[side]) in history
            assert reverse("review:lesson", args=[made.pk]) in page(client, reverse("review:lesson", args=[side]))

    def test_a_refused_wording_keeps_what_was_typed(self, client, login, pair) -> None:
        login("reviewer")
        typed = "Write to joe.doe@corp.example.com before a retry."
        refused = settle(client, pair, "merge_both", "", text=typed, note="as agreed")
        assert refused.status_code == 422
        assert all(words in refused.content.decode() for words in (typed, "as agreed", "something private"))
        refused = settle(client, pair, "keep_both", "", second_text=typed, first_text="For reads, retry `fetch()`.")
        assert refused.status_code == 422
        assert all(words in refused.content.decode() for words in (typed, "For reads, retry", "something private"))
        assert (state_of(pair.first), state_of(pair.second)) == ("active", "active")

    def test_both_stay_each_with_the_scope_that_was_written_down(self, client, login, pair) -> None:
        login("reviewer")
        asked = page(client, form(page(client, QUEUE), "keep_both"))
        assert f">{text_of(pair.first)}</textarea>" in asked
        assert f">{text_of(pair.second)}</textarea>" in asked
        scoped = f"For reads, {text_of(pair.first)}"
        settle(client, pair, "keep_both", "", first_text=scoped, second_text=text_of(pair.second))
        assert (state_of(pair.first), state_of(pair.second)) == ("superseded", "active")
        assert Lesson.objects.get(supersedes=pair.first).text == scoped
        assert "took the place of A" in page(client, at(pair))

    def test_with_one_side_out_of_service_nothing_is_to_be_decided(self, client, login, pair) -> None:
        who = login("reviewer")
        rejection.reject(pair.second, reviewer=who.user_id, reason="wrong")
        shown = page(client, at(pair))
        assert "One of the two is out of service" in shown
        assert "keep_first" not in shown


class TestTheQueue:
    def test_a_skipped_pair_comes_after_the_others(self, client, login, pair, lesson, space) -> None:
        place(lesson("Always close `fetch()` after a read."), space, 0.95, axis=1)
        place(lesson("Never close `fetch()` after a read."), space, 0.95, axis=1)
        contradiction.detect()
        login("reviewer")
        first = page(client, QUEUE)
        item = ReviewItem.objects.get(pk=claim(client, first))
        client.post(reverse("review:contradiction_skip", args=[item.pk]))
        second = page(client, QUEUE)
        assert ("with a timeout" in first) != ("with a timeout" in second)
        item.refresh_from_db()
        assert (item.status, item.claimed_by) == ("open", None)

    def test_two_reviewers_are_not_given_the_same_pair(self, client, login, pair) -> None:
        login("reviewer", "ana")
        claim(client, page(client, QUEUE))
        login("reviewer", "kim")
        assert "ana is reviewing what is left" in page(client, QUEUE)
        named = page(client, f"{QUEUE}?item={ReviewItem.objects.get().pk}")
        assert "<strong>ana</strong> is reviewing this" in named
        assert "Take it over to decide" in named
        assert "data-claim" not in named

    def test_without_any_pair_it_says_what_would_be_here(self, client, login) -> None:
        login("reviewer")
        assert "No contradiction yet" in page(client, QUEUE)


class TestWhoMay:
    @pytest.mark.parametrize("role", ["viewer", "judge"])
    def test_others_read_and_decide_nothing(self, client, login, pair, role) -> None:
        login(role)
        for url in (QUEUE, at(pair)):
            shown = page(client, url)
            assert "Deciding needs the role reviewer" in shown
            assert "data-dialog" not in shown.split('id="main"')[1].split("</main>")[0]
        assert settle(client, pair, "keep_first").status_code == 403
        assert client.post(reverse("review:contradiction_skip", args=[ReviewItem.objects.get().pk])).status_code == 403
        assert Contradiction.objects.get().verdict is None

    def test_another_accounts_pair_is_not_there(self, client, login, lesson, space, account, rival_account) -> None:
        for text in (ALWAYS, NEVER):
            place(lesson(text, account_id=account.pk), space, 0.95)
        contradiction.detect()
        made, item = Contradiction.objects.get(), ReviewItem.objects.get()
        login("maintainer", "max", rival_account)
        assert client.get(at(made)).status_code == 404
        for url in (QUEUE, f"{QUEUE}?item={item.pk}"):
            assert "with a timeout" not in page(client, url)
        assert settle(client, made, "keep_first").status_code == 403

    def test_nobody_gets_in_without_a_login_or_with_a_malformed_address(self, client, login, pair) -> None:
        assert client.get(at(pair)).url.startswith("/login/")
        login("reviewer")
        assert client.get(f"{QUEUE}?item=nonsense").status_code == 404


def question() -> dict[str, Any]:
    return dict(ReviewItem.objects.values().get())


def test_reading_writes_nothing_and_the_script_of_the_page_holds_what_is_offered(client, login, pair) -> None:
    login("reviewer")
    item, row = question(), Contradiction.objects.values().get()
    for url in (at(pair), QUEUE):
        page(client, url)
    assert (question(), Contradiction.objects.values().get()) == (item, row)
    claim(client, page(client, QUEUE))
    held = question()
    assert {key for key in held if held[key] != item[key]} == {"claimed_by_id", "claim_expires_at"}


def test_a_page_takes_at_most_25_reads(client, login, pair, account, django_assert_max_num_queries) -> None:
    make_callers(account)
    lessons = list(Lesson.objects.all())
    for n in range(5):
        serve(account, f"task {n}", lessons)
    login("reviewer")
    for url in (QUEUE, at(pair)):
        with django_assert_max_num_queries(25):
            page(client, url)
