"""Two people at one queue: who holds what, how it is let go, who was faster, and what an undo must not undo."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memory.models import Account, Adjudication, EmbeddingSpace, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services.adjudication import decide
from tests.browser.conftest import Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import becomes, holder, named, new_lessons, on_card, stall, state, words
from tests.services.people import decision

Enter = Callable[..., Visitor]
INBOX = "/review/inbox/"


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone; each test brings its questions."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


def takes(someone: Visitor, item: ReviewItem, path: str = INBOX) -> None:
    """Opens the queue and holds the question that it shows."""
    someone.visit(path)
    assert on_card(someone) == words(item.subject)
    becomes(someone, True, lambda: holder(item) != "")


class TestOneQueue:
    def test_two_people_are_given_two_questions_and_one_may_take_over(self, visitor: Enter, scene: Account) -> None:
        first, second, _ = new_lessons(3)
        ana, ben = visitor("ana"), visitor("ben")
        takes(ana, first)
        takes(ben, second)
        assert (holder(first), holder(second)) == ("ana", "ben")
        row = ben.page.locator("[data-rows] > li", has_text=words(first.subject))
        assert "ana is at it" in row.inner_text()

        ben.visit(f"/review/items/{first.pk}/")
        assert "ana is reviewing this" in ben.page.locator(".card").inner_text()
        assert ben.page.locator(".decisions button:enabled").count() == 0
        ben.press("a", "t", "q")
        assert Adjudication.objects.count() == 0
        ben.page.get_by_role("button", name="Take over").click()
        becomes(ben, "ben", lambda: holder(first))
        ben.page.locator(".decisions button:enabled").first.wait_for()
        ben.press("a")
        ben.told("Approved.")
        assert Adjudication.objects.get().reviewer.get_username() == "ben"

    def test_who_is_late_sees_what_was_decided_keeps_their_words_and_may_still_do_it(
        self, visitor: Enter, scene: Account
    ) -> None:
        first, second, _ = new_lessons(3)
        ana = visitor("ana")
        takes(ana, first)
        ana.press("t")
        ana.page.locator("#ask-note").fill("It hides the real cause.")
        decide(decision(named("ben"), Verdict.APPROVE, first.subject, first))
        ana.page.locator("input[value=outdated]").check()
        with ana.page.expect_response("**/review/decide/") as answer:
            ana.press("Control+Enter")
        assert answer.value.status == 409
        card = ana.page.locator("#main [role=alert]")
        assert card.is_visible()
        shown = card.inner_text()
        assert "ben decided" in shown
        assert "It hides the real cause." in shown
        assert ana.focus == "H1 This changed since you looked"
        assert state(first.subject) == "active"
        ana.page.get_by_role("link", name="Reject all the same").click()
        ana.page.locator("#ask-note").wait_for()
        assert ana.page.locator("#ask-note").input_value() == "It hides the real cause."
        ana.press("2")
        ana.told("Rejected.")
        assert state(first.subject) == "rejected"
        assert on_card(ana) == words(second.subject)


class TestLettingGo:
    @pytest.mark.parametrize("how", ["decide", "skip", "leave", "close", "cancel", "expiry", "logout"])
    def test_a_question_goes_back_to_the_others(self, visitor: Enter, scene: Account, how: str) -> None:
        first, second, third = new_lessons(3)
        ana, ben = visitor("ana"), visitor("ben")
        takes(ana, first)
        takes(ben, second)
        match how:
            case "decide":
                ana.press("a")
                ana.told("Approved.")
            case "skip":
                ana.press("s")
                ana.told("Skipped.")
            case "leave":
                ana.press("g", "h")
            case "close":
                ana.page.goto("about:blank")
            case "cancel":
                ana.press("t")
                ana.page.locator("#ask-note").wait_for()  # Escape before the dialog is open closes nothing
                ana.press("Escape")
            case "expiry":
                ReviewItem.objects.filter(pk=first.pk).update(claim_expires_at=timezone.now() - timedelta(seconds=1))
            case "logout":
                ana.page.get_by_role("button", name="Log out").click()
                ana.page.wait_for_url("**/login/")
        becomes(ana, "", lambda: holder(first))
        becomes(ana, "ana" if how in ("decide", "skip") else "", lambda: holder(third))
        ben.visit(INBOX)
        assert on_card(ben) == words((second if how == "decide" else first).subject)
        free = ben.page.locator("[data-rows] > li:not(:has-text('is at it'))")
        waiting = {"decide": 2}.get(how, 3)
        assert ben.page.locator(".tabs a[aria-current=page]").inner_text() == f"New {waiting}"
        assert free.count() == (waiting - 1 if how in ("decide", "skip") else waiting)
        assert ben.page.locator("#rail a", has_text="Inbox").inner_text().split() == ["Inbox", f"{waiting}", "waiting"]

    def test_what_is_let_go_while_it_is_being_taken_is_free(self, visitor: Enter, scene: Account) -> None:
        first, *_ = new_lessons(3)
        ana = visitor("ana")
        takes(ana, first)
        taking = stall(ana, "**/claim/")
        ana.press("t")
        ana.page.locator("#ask-note").wait_for()
        becomes(ana, 1, lambda: len(taking))
        ana.press("Escape")
        with ana.page.expect_response("**/release/"), ana.page.expect_response("**/claim/"):
            taking[0].continue_()
        assert holder(first) == ""


class TestUndo:
    def test_refuses_once_somebody_else_has_changed_it_and_says_why(self, visitor: Enter, scene: Account) -> None:
        first, *_ = new_lessons(3)
        ana = visitor("ana")
        takes(ana, first)
        ana.press("a")
        ana.told("Approved.")
        decide(decision(named("ben"), Verdict.REJECT, first.subject))
        with ana.page.expect_response("**/review/undo/") as answer:
            ana.press("u")
        assert answer.value.status == 409
        shown = ana.page.locator("#main").inner_text()
        assert "The lesson changed after this decision, so it cannot be undone." in shown
        assert state(first.subject) == "rejected"
        assert not Adjudication.objects.filter(verdict="undo").exists()
