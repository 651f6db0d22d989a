"""Judging work in the browser: what is offered, what stays hidden, who may say what, and what is shown afterwards."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import (
    Account,
    Adjudication,
    Comment,
    Interaction,
    Lesson,
    LessonUsage,
    Outcome,
    ReviewItem,
    UsageExemption,
)
from memory.rules.information import judged_blind
from memory.services import judging, review_queue
from memory.services.adjudication import version_of
from memory.services.credit import sweep
from tests.review.script import claim
from tests.services.people import member
from tests.services.play import make_callers, make_lessons, say, serve

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script> \u202eאבג 😀 " + "x" * 2000
QUEUE = "/review/outcomes/"


@pytest.fixture(autouse=True)
def trial(settings: Any) -> None:
    settings.SONDER_TRUST_POLICY = "trial"


@pytest.fixture
def callers(account: Account) -> dict[str, Any]:
    return make_callers(account)


@pytest.fixture
def work(account: Account, callers: dict[str, Any]) -> Callable[..., Interaction]:
    """A piece of work that was answered; `blind` says whether its machine's verdict is to be hidden."""

    def make(
        task: str, lessons: list[Lesson], *, blind: bool = False, response: str | None = "Done.", **said: str
    ) -> Interaction:
        made = serve(account, task, lessons)
        while judged_blind(made.pk) is not blind:
            LessonUsage.objects.filter(interaction=made).delete()
            made.delete()
            made = serve(account, task, lessons)
        Interaction.objects.filter(pk=made.pk).update(response=response)
        for source, signal in said.items():
            say(callers[source], made.pk, signal)
        sweep()
        return made

    return make


def page(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def at(interaction: Interaction) -> str:
    return reverse("review:interaction", args=[interaction.pk])


def judge(client: Client, interaction: Interaction, signal: str, **more: Any) -> Any:
    item = ReviewItem.objects.filter(subject=interaction.pk, status="open").first()
    sent = {
        "decision": "judge_outcome",
        "subject": interaction.pk,
        "item": item.pk if item else "",
        "expected_version": item.version if item else version_of(interaction.pk),
        "signal": signal,
        "idempotency_key": "once",
        "next": f"{QUEUE}?judged={interaction.pk}",
        **more,
    }
    return client.post("/review/decide/", sent)


class TestTheQueue:
    def test_offers_the_verdict_that_would_change_most_and_says_so(self, client, login, work) -> None:
        quiet, suspected = make_lessons(2)
        for n in range(8):
            work(f"easy {n}", [quiet], caller="accepted")
        for n in range(2):
            work(f"hard {n}", [suspected], caller="failed")
        critical = work("The critical request", [suspected])
        work("The calm request", [quiet])
        judging.run()
        login("judge")
        shown = page(client, QUEUE)
        assert "The critical request" in shown
        lesson = "Prefer <code>tool_1()</code> over writing loop number 1 by hand."
        assert f"A loss here would put “{lesson}” on trial." in shown
        answer = judge(client, critical, "accepted", note="looked at it")
        assert answer.status_code in (302, 303)
        following = page(client, answer.url)
        assert "The calm request" in following
        assert "You just judged" in following
        said = Outcome.objects.get(interaction=critical.pk)
        assert (said.source, said.signal, said.detail) == ("caller", "accepted", "looked at it")

    def test_two_judges_are_offered_different_work_and_the_last_hears_who_is_at_it(
        self, client, login, work, account
    ) -> None:
        (one,) = make_lessons(1)
        work("one", [one]), work("two", [one])
        judging.run()
        seen = []
        for name in ("jo", "kim"):
            login("judge", name)
            shown = page(client, QUEUE)
            claim(client, shown)
            seen.append({task for task in ("one", "two") if f'<p class="pre">{task}</p>' in shown})
        assert len(seen[0]) == len(seen[1]) == 1
        assert seen[0] != seen[1]
        login("judge", "lee")
        shown = page(client, QUEUE)
        assert "Others are at it" in shown

    def test_what_a_person_cannot_tell_is_not_offered_to_them_again_but_to_others(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        work("one", [one])
        judging.run()
        item = ReviewItem.objects.get()
        login("judge", "jo")
        page(client, QUEUE)
        assert client.post(reverse("review:outcome_skip", args=[item.pk])).status_code == 302
        assert "Nothing waits for a verdict" in page(client, QUEUE)
        item.refresh_from_db()
        assert (item.status, item.claimed_by) == ("open", None)
        login("judge", "kim")
        assert "Did this work?" in page(client, QUEUE)
        assert Outcome.objects.count() == 0

    def test_a_named_question_is_shown_although_somebody_holds_it(self, client, login, work, account) -> None:
        (one,) = make_lessons(1)
        work("one", [one])
        judging.run()
        item = ReviewItem.objects.get()
        review_queue.claim(item.pk, member(account, "judge", "kim"))
        login("judge", "jo")
        shown = page(client, f"{QUEUE}?item={item.pk}")
        assert "<strong>kim</strong> is reviewing this" in shown
        assert "Take it over to decide" in shown
        assert "data-claim" not in shown
        taken = {"take_over": "1", "next": f"{QUEUE}?item={item.pk}"}
        assert client.post(reverse("review:claim", args=[item.pk]), taken).status_code == 302
        assert "kim" not in page(client, f"{QUEUE}?item={item.pk}")

    def test_each_empty_queue_has_its_own_sentence(self, client, login, work) -> None:
        login("judge", "jo")
        assert "No work yet" in page(client, QUEUE)
        work("one", [])
        assert "Nothing waits for a verdict" in page(client, QUEUE)
        login("viewer", "vi")
        assert "Judging needs a role" in page(client, QUEUE)

    def test_a_late_verdict_meets_what_a_colleague_said(self, client, login, work, account) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        item = ReviewItem.objects.get()
        login("judge", "jo")
        judge(client, made, "rejected")
        login("judge", "kim")
        late = judge(client, made, "accepted", item=item.pk, expected_version=item.version, idempotency_key="kims")
        assert late.status_code == 409
        assert "jo" in late.content.decode()
        assert Outcome.objects.filter(interaction=made.pk).count() == 1


class TestJudgingBlind:
    def test_the_machines_verdict_is_absent_from_every_page_until_a_person_has_judged(
        self, client, login, work
    ) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one], blind=True, machine="failed")
        judging.run()
        login("reviewer")
        for url in (QUEUE, at(made), reverse("review:interactions")):
            shown = page(client, url)
            assert "failed" not in shown
            assert "did not work" not in shown.lower()
            assert "exempt_row" not in shown, "that a loss can be excused would tell that it is one"
        assert "judged blind" in page(client, at(made))
        after = page(client, judge(client, made, "accepted").url)
        assert "failed, the machine" in after
        assert "failed" in page(client, at(made))

    def test_nine_in_ten_are_judged_with_the_machines_verdict_in_sight(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one], machine="tests_passed")
        login("judge")
        assert "tests_passed, the machine" in page(client, at(made))


class TestAfterwards:
    def test_the_running_agreement_says_too_few_below_thirty_and_a_share_from_there(self, client, login, work) -> None:
        who = login("judge")
        for n in range(30):
            made = work(f"task {n}", [], machine="tests_passed" if n else "failed")
            if n == 29:
                assert "too few to say (1 more)" in page(client, f"{QUEUE}?judged={made.pk}")
            judge(client, made, "accepted", idempotency_key=f"key {n}")
        shown = page(client, f"{QUEUE}?judged={made.pk}")
        assert "97%</strong> of 30" in shown
        assert Adjudication.objects.filter(reviewer=who.user_id).count() == 30

    def test_a_disagreement_shows_both_votes_with_their_notes_and_a_verdict_settles_it(
        self, client, login, work, account
    ) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one], machine="tests_passed")
        login("judge", "jo")
        judge(client, made, "rejected", note="the tests test nothing")
        judging.run()
        assert "Nothing waits" in page(client, QUEUE), "their own word is not theirs to settle"
        login("judge", "kim")
        shown = page(client, QUEUE)
        assert "Judges disagree" in shown
        assert "the tests test nothing" in shown
        assert "tests_passed, the machine" in shown
        judge(client, made, "rejected", idempotency_key="kims")
        assert ReviewItem.objects.get(kind="outcome_conflict").status == "resolved"
        assert "kim" in page(client, at(made)), "who confirmed a word is told although no second outcome is stored"

    def test_a_verdict_can_be_undone_and_is_asked_for_again(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        login("judge")
        judge(client, made, "accepted")
        client.post("/review/undo/", {"adjudication": Adjudication.objects.get().pk})
        assert "Did this work?" in page(client, QUEUE)


class TestWhoMay:
    def test_a_judge_may_judge_and_not_excuse(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one], caller="rejected")
        usage = LessonUsage.objects.get()
        login("judge")
        assert "exempt_row" not in page(client, at(made))
        sent = {
            "decision": "exempt_row", "subject": one.pk, "usage": usage.pk, "reason_code": "hard_work",
            "expected_version": version_of(one.pk), "idempotency_key": "x",
        }  # fmt: skip
        assert client.post("/review/decide/", sent).status_code == 403
        assert judge(client, made, "accepted").status_code in (302, 303)

    def test_a_reviewer_excuses_a_lesson_from_the_page_with_its_number(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one], caller="rejected")
        login("reviewer")
        shown = page(client, at(made))
        assert 'data-key="1"' in shown
        sent = {
            "decision": "exempt_row", "subject": one.pk, "usage": LessonUsage.objects.get().pk,
            "reason_code": "hard_work", "expected_version": version_of(one.pk), "idempotency_key": "x",
        }  # fmt: skip
        client.post("/review/decide/", sent)
        assert UsageExemption.objects.count() == 1
        assert "Excused here" in page(client, at(made))

    def test_a_viewer_reads_and_decides_nothing(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        made = work("one", [one])
        judging.run()
        login("viewer")
        shown = page(client, at(made))
        assert "Judging needs the role judge" in shown
        assert 'value="accepted" disabled' in shown
        assert judge(client, made, "accepted").status_code == 403
        assert client.post(reverse("review:outcome_skip", args=[ReviewItem.objects.get().pk])).status_code == 403
        assert Outcome.objects.count() == 0

    def test_another_accounts_work_is_not_there(self, client, login, work, rival_account) -> None:
        (one,) = make_lessons(1)
        made = work("A secret request", [one])
        judging.run()
        login("maintainer", "max", rival_account)
        item = ReviewItem.objects.get()
        for url in (at(made), f"{at(made)}private/", f"{QUEUE}?judged={made.pk}"):
            assert client.get(url).status_code == 404
        listed = ("/review/interactions/", f"/review/interactions/?lesson={one.pk}")
        for url in (QUEUE, f"{QUEUE}?item={item.pk}", *listed):
            assert "A secret request" not in page(client, url)
        assert judge(client, made, "accepted").status_code in (403, 404)

    def test_nobody_gets_in_without_a_login_or_with_a_malformed_address(self, client, login, work) -> None:
        made = work("one", [])
        for url in (QUEUE, at(made), "/review/interactions/"):
            assert client.get(url).url.startswith("/login/")
        login("judge")
        assert client.get(f"{QUEUE}?item=nonsense").status_code == 404
        assert client.get(f"{QUEUE}?judged=nonsense").status_code == 404
        assert client.get("/review/interactions/?project=nonsense&before=x&state=x").status_code == 200


class TestTheText:
    def test_after_retention_the_outcome_stays_and_the_page_says_that_the_text_is_gone(
        self, client, login, work, settings
    ) -> None:
        settings.SONDER_RETAIN_TEXTS_DAYS = 30
        (one,) = make_lessons(1)
        made = work("one", [one], response=None, caller="accepted")
        login("judge")
        assert "reported no answer" in page(client, at(made))
        Interaction.objects.filter(pk=made.pk).update(created_at="2020-01-01T00:00Z")
        shown = page(client, at(made))
        assert "Outcome kept, text gone" in shown
        assert "accepted" in shown

    def test_a_long_answer_is_folded_and_nothing_of_it_is_lost(self, client, login, work) -> None:
        made = work("one", [], response="a" * 4000 + "THE END")
        login("viewer")
        shown = page(client, at(made))
        assert "The rest of the answer" in shown
        assert "THE END" in shown

    def test_hostile_text_is_escaped_everywhere(self, client, login, work) -> None:
        (one,) = make_lessons(1)
        Lesson.objects.filter(pk=one.pk).update(text=HOSTILE)
        made = work(HOSTILE, [one], response=HOSTILE)
        judging.run()
        login("judge")
        for url in (QUEUE, at(made), "/review/interactions/"):
            shown = page(client, url)
            assert "<script>alert" not in shown
            assert "&lt;script&gt;" in shown

    def test_private_data_is_flagged_with_the_way_to_erase_it(self, client, login, work) -> None:
        made = work("one", [])
        login("judge")
        assert "manage.py erase interaction" in page(client, f"{at(made)}private/")
        assert client.post(f"{at(made)}private/", {"note": "a phone number"}).url == at(made)
        shown = page(client, at(made))
        assert "Private data: a phone number" in shown
        assert f"manage.py erase interaction {made.pk}" in shown
        assert client.post(f"{at(made)}private/", {"note": "y" * 2001}).status_code == 422
        assert Comment.objects.count() == 1


class TestTheList:
    def test_it_is_narrowed_by_lesson_state_model_and_project_and_pages_on(
        self, client, login, work, monkeypatch
    ) -> None:
        one, other = make_lessons(2)
        work("alpha", [one], caller="rejected", machine="tests_passed")
        gone = work("beta", [other], response=None)
        Interaction.objects.filter(pk=gone.pk).update(model="qwen", tier="fast")
        work("gamma", [])
        login("viewer")

        def listed(query: str) -> set[str]:
            shown = page(client, f"/review/interactions/{query}")
            return {name for name in ("alpha", "beta", "gamma") if f">{name}</a>" in shown}

        assert listed("") == {"alpha", "beta", "gamma"}
        assert listed(f"?lesson={one.pk}") == {"alpha"}
        assert listed("?state=disputed") == {"alpha"}
        assert listed("?state=judged") == {"alpha"}
        assert listed("?state=to_judge") == {"gamma"}
        assert listed("?state=text_gone") == listed("?model=qwen") == listed("?tier=fast") == {"beta"}
        assert "Nothing matches" in page(client, "/review/interactions/?model=none")
        monkeypatch.setattr("review.queries.interactions.PAGE", 2)
        assert listed("") == {"gamma", "beta"}
        assert "Older" in page(client, "/review/interactions/")
        assert listed(f"?before={gone.pk}") == {"alpha"}

    def test_without_any_work_it_says_what_would_be_here(self, client, login) -> None:
        login("viewer")
        assert "No work yet" in page(client, "/review/interactions/")


def rows_now() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Outcome, Adjudication, ReviewItem, Comment, LessonUsage))


def question() -> dict[str, Any]:
    return dict(ReviewItem.objects.values().get())


def test_reading_writes_nothing_and_the_script_of_the_page_holds_what_is_offered(client, login, work) -> None:
    (one,) = make_lessons(1)
    made = work("one", [one], machine="failed")
    judging.run()
    login("judge")
    before, item = rows_now(), question()
    for url in (at(made), "/review/interactions/", f"{at(made)}private/", QUEUE):
        page(client, url)
    assert (rows_now(), question()) == (before, item)
    claim(client, page(client, QUEUE))
    held = question()
    assert rows_now() == before
    assert {key for key in item if item[key] != held[key]} == {"claimed_by_id", "claim_expires_at"}


def test_a_page_takes_a_constant_number_of_reads(client, login, work, account, django_assert_max_num_queries) -> None:
    made = work("many", make_lessons(9), caller="rejected", machine="tests_passed", unknown="failed")
    judging.run()
    login("reviewer")
    for url in (QUEUE, at(made)):
        with django_assert_max_num_queries(25):
            page(client, url)
    with django_assert_max_num_queries(12):
        page(client, "/review/interactions/")
