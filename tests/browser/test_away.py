"""A server that is away, and a login that has run out: what was typed is kept, and nothing is done twice."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from memory.models import Account, Adjudication, Comment, EmbeddingSpace, Preference
from tests.browser.conftest import Visitor
from tests.browser.steps import Sparse, reword, sparse

Enter = Callable[..., Visitor]
NOTE = "It hides the real cause — “always”."


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Sparse:
    return sparse(Account.objects.create(slug="acme", name="Acme", review_policy="auto"))


def ask_why(someone: Visitor, scene: Sparse) -> None:
    """The dialog that rejects a lesson, with a reason chosen and a note typed."""
    someone.visit(f"/review/lessons/{scene.lesson.pk}/")
    someone.press("t")
    someone.page.locator("#ask-note").fill(NOTE)
    someone.page.locator("input[value=other]").check()


def only_network(someone: Visitor) -> None:
    """The browser said that a request failed, and nothing else."""
    assert [said for said in someone.complaints if "Failed to fetch" not in said] == []
    someone.complaints.clear()


def lose(route: Route) -> None:
    """The server does it, and nobody hears of it."""
    route.fetch(max_redirects=0)
    route.abort()


class TestTheServer:
    def test_that_is_away_leaves_what_was_typed_and_takes_it_once_it_is_back(
        self, visitor: Enter, scene: Sparse
    ) -> None:
        ana = visitor("ana")
        ask_why(ana, scene)
        ana.page.route("**/review/decide/", lambda route: route.abort())
        ana.page.locator("#ask-note").press("Control+Enter")
        message = ana.page.get_by_role("alert")
        message.get_by_role("button", name="Try again").wait_for()
        assert "did not answer" in message.inner_text()
        assert ana.page.locator("#ask-note").input_value() == NOTE
        assert ana.page.locator("input[value=other]").is_checked()
        assert Adjudication.objects.count() == 0
        ana.page.unroute("**/review/decide/")
        message.get_by_role("button", name="Try again").click()
        ana.page.locator(".toast").wait_for()
        assert Adjudication.objects.get().note == NOTE
        assert message.count() == 0
        only_network(ana)

    def test_whose_answer_is_lost_does_it_once(self, visitor: Enter, scene: Sparse) -> None:
        ana = visitor("ana")
        ask_why(ana, scene)
        ana.page.route("**/review/decide/", lose, times=1)
        ana.page.locator("#ask-note").press("Control+Enter")
        again = ana.page.get_by_role("button", name="Try again")
        again.wait_for()
        assert Adjudication.objects.count() == 1
        again.click()
        ana.page.locator(".toast").wait_for()
        assert Adjudication.objects.count() == 1
        assert "Rejected." in ana.page.locator("#status").inner_text()
        only_network(ana)

    def test_whose_answer_to_a_comment_is_lost_keeps_it_once(self, visitor: Enter, scene: Sparse) -> None:
        ana = visitor("ana")
        ana.visit("/review/inbox/")
        ana.page.locator("summary", has_text="comments").click()
        ana.page.fill("#say", NOTE)
        ana.page.route("**/comment/", lose, times=1)
        ana.page.locator("#say").press("Enter")
        ana.page.get_by_role("button", name="Try again").click()
        ana.told("Comment saved")
        assert Comment.objects.get().text == NOTE
        only_network(ana)

    @pytest.mark.parametrize("status", [500, 502])
    def test_that_fails_says_so_beside_the_form(self, visitor: Enter, scene: Sparse, status: int) -> None:
        mia, path = visitor("mia"), f"/review/preferences/{scene.preference.pk}/edit/"
        pages = {
            500: "<h1>Something went wrong here</h1><p>What you sent was not saved.</p>",
            502: "<html><body>Bad gateway</body></html>",
        }
        words = {500: "Something went wrong here. What you sent was not saved.", 502: "The server answered 502."}
        mia.visit(path)
        mia.page.fill("#text", "I prefer examples.")
        mia.page.fill("#note", NOTE)
        mia.page.fill("#expected_outcome", "Fewer questions back.")
        answer = {"status": status, "body": pages[status], "content_type": "text/html"}
        mia.page.route(f"**{path}", lambda route: route.fulfill(**answer), times=1)
        mia.page.locator("#note").press("Control+Enter")
        again = mia.page.get_by_role("button", name="Try again")
        again.wait_for()
        assert words[status] in mia.page.get_by_role("alert").inner_text()
        assert mia.page.input_value("#note") == NOTE
        again.click()
        mia.page.locator(".toast").wait_for()
        assert Preference.objects.get().text == "I prefer examples."


class TestALogin:
    def log_in(self, someone: Visitor, name: str) -> None:
        someone.page.locator("#id_username").fill(name)
        someone.page.locator("#id_password").fill(name)
        someone.page.get_by_role("button", name="Log in").click()
        someone.page.locator("#main").wait_for()

    def test_that_ran_out_comes_back_to_the_reason_that_was_being_given(self, visitor: Enter, scene: Sparse) -> None:
        ana = visitor("ana")
        ask_why(ana, scene)
        ana.page.context.clear_cookies(name="sessionid")
        ana.page.locator("#ask-note").press("Control+Enter")
        self.log_in(ana, "ana")
        notice = ana.page.locator("#main .notice", has_text="You had been logged out.")
        notice.wait_for()
        assert ana.page.locator("h1").inner_text() == "Reject"
        assert ana.page.locator("#ask-note").input_value() == NOTE
        assert ana.page.locator("input[value=other]").is_checked()
        assert Adjudication.objects.count() == 0
        ana.page.locator("#ask-note").press("Control+Enter")
        ana.page.locator(".toast").wait_for()
        assert Adjudication.objects.get().note == NOTE

    def test_that_ran_out_does_not_hide_what_somebody_else_saved(self, visitor: Enter, scene: Sparse) -> None:
        mia = visitor("mia")
        mia.visit(f"/review/preferences/{scene.preference.pk}/edit/")
        mia.page.fill("#text", "I prefer examples.")
        mia.page.fill("#note", NOTE)
        mia.page.fill("#expected_outcome", "Fewer questions back.")
        mia.page.context.clear_cookies(name="sessionid")
        reword(scene.preference, "I prefer tables.")
        mia.page.locator("#note").press("Control+Enter")
        self.log_in(mia, "mia")
        assert mia.page.input_value("#text") == "I prefer examples."
        assert mia.page.input_value("#note") == NOTE
        mia.page.locator("#note").press("Control+Enter")
        mia.page.get_by_role("heading", name="It changed while you were at it").wait_for()
        assert Preference.objects.get().text == "I prefer tables."

    def test_of_somebody_else_is_not_shown_what_the_first_had_typed(self, visitor: Enter, scene: Sparse) -> None:
        ana = visitor("ana")
        ask_why(ana, scene)
        ana.page.context.clear_cookies(name="sessionid")
        ana.page.locator("#ask-note").press("Control+Enter")
        self.log_in(ana, "ben")
        assert ana.page.locator("#ask-note").input_value() == ""

    def test_that_ran_out_without_scripts_leads_back_to_the_page_of_the_form(
        self, visitor: Enter, scene: Sparse
    ) -> None:
        ana = visitor("ana", java_script_enabled=False)
        path = f"/review/lessons/{scene.lesson.pk}/"
        ana.visit(path)
        ana.page.context.clear_cookies(name="sessionid")
        ana.page.locator("#do-approve").click()
        self.log_in(ana, "ana")
        assert ana.page.url == ana.base + path
        assert Adjudication.objects.count() == 0


def test_what_was_refused_is_no_page_to_come_back_to(visitor: Enter, scene: Sparse) -> None:
    ana, lesson = visitor("ana"), scene.lesson
    ask_why(ana, scene)
    ana.page.locator("dialog form").evaluate("form => { form.elements.expected_version.value = '99'; }")
    ana.page.locator("#ask-note").press("Control+Enter")
    ana.page.get_by_role("heading", name="This changed since you looked").wait_for()
    ana.page.reload()
    ana.page.get_by_role("heading", name=lesson.text.replace("`", "")).wait_for()
