"""The inbox in a browser, by one person: with the keyboard alone, under impatience, through filters, and put off."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Account, Adjudication, EmbeddingSpace, Lesson, LessonStanding, ReviewItem
from memory.services import review_priority
from tests.browser.conftest import Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import becomes, new_lessons, on_card, stall, state, words
from tests.services.play import make_callers, serve

Enter = Callable[..., Visitor]
INBOX = "/review/inbox/"


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone; each test brings its questions."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


class TestTheKeyboardAlone:
    def test_logs_in_clears_ten_questions_and_takes_two_back(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(12)
        ana = visitor(None)
        ana.visit(f"/login/?next={INBOX}")
        ana.page.locator("#id_username:focus").wait_for()  # autofocus comes some time after the page
        ana.page.keyboard.type("ana")
        ana.page.keyboard.press("Tab")
        ana.page.keyboard.type("ana")
        ana.page.keyboard.press("Enter")
        ana.page.wait_for_url(ana.base + INBOX)
        for place, item in enumerate(items[:10]):
            assert on_card(ana) == words(item.subject)
            rejecting = place in (3, 7)
            before = ana.pressed
            ana.press(*("t3" if rejecting else "a"))
            assert ana.pressed - before == (2 if rejecting else 1)
            ana.told("Rejected." if rejecting else "Approved.")
            assert ana.focus == f"H2 {words(items[place + 1].subject)}"
        assert ana.pressed == 12
        for _ in range(2):
            ana.press("u")
            ana.told("Undone: approved.")
            assert ana.focus.startswith("H2 ")
        assert ana.pressed == 14
        ended = [state(item.subject) for item in items]
        assert ended == [*["active"] * 3, "rejected", *["active"] * 3, "rejected", *["candidate"] * 4]
        assert ReviewItem.objects.filter(status="open").count() == 4
        assert Adjudication.objects.count() == 12

    def test_finds_one_lesson_by_its_words(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(12)
        ana = visitor("ana")
        ana.visit(INBOX)
        ana.press("/")
        ana.page.keyboard.type("tool_7")
        ana.press("Enter")
        ana.page.wait_for_url("**?q=tool_7*")
        assert ana.pressed == 2
        assert on_card(ana) == words(items[7].subject)
        assert ana.page.locator("[data-rows] a.cover").count() == 1


class TestImpatience:
    @pytest.mark.parametrize(("key", "verdict"), [("a", "approve"), ("t3", "reject")])
    def test_ten_fast_presses_decide_once_about_what_was_shown(
        self, visitor: Enter, scene: Account, key: str, verdict: str
    ) -> None:
        first, second, *_ = new_lessons(4)
        ana = visitor("ana")
        ana.visit(INBOX)
        ana.press(*key[:-1])
        waiting = stall(ana, "**/review/decide/")
        for _ in range(10):
            ana.page.keyboard.press(key[-1])
        becomes(ana, 1, lambda: len(waiting))
        waiting[0].continue_()
        ana.page.locator(".toast").wait_for()
        ana.settled()
        assert Adjudication.objects.values_list("subject", "verdict").get() == (first.subject, verdict)
        assert on_card(ana) == words(second.subject)

    def test_a_form_that_is_sent_again_and_again_is_one_event(self, visitor: Enter, scene: Account) -> None:
        first, second, *_ = new_lessons(3)
        ana = visitor("ana")
        ana.visit(INBOX)
        with ana.page.expect_request("**/review/decide/") as sent:
            ana.page.evaluate("() => { for (const n of [1, 2, 3]) document.getElementById('do-approve').click() }")
        ana.page.locator(".toast").wait_for()
        ana.settled()
        form, kind = sent.value.post_data, sent.value.headers["content-type"]
        assert form is not None
        for _ in range(2):
            again = ana.page.request.post(sent.value.url, data=form, headers={"content-type": kind}, max_redirects=0)
            assert again.status == 302
            assert str(second.pk) in again.headers["location"]
        assert Adjudication.objects.get().subject == first.subject
        assert ReviewItem.objects.filter(status="open").count() == 2
        ana.visit("/review/audit/")
        assert ana.page.locator("#main", has_text=words(first.subject)).count() == 1


class TestFilters:
    def test_are_ones_own_and_stand_in_the_address(self, visitor: Enter, scene: Account) -> None:
        new_lessons(12)
        ana, ben = visitor("ana"), visitor("ben")
        ana.visit(f"{INBOX}?q=tool_1&kind=new_lesson")
        ben.visit(INBOX)
        rows = "[data-rows] a.cover"
        listed = ana.page.locator(rows).all_inner_texts()
        assert len(listed) == 3
        assert ben.page.locator(rows).count() == 12
        ben.visit(ana.page.url.removeprefix(ana.base))
        assert ben.page.locator(rows).all_inner_texts() == listed
        assert ben.page.locator("#q").input_value() == "tool_1"

    def test_back_brings_list_place_and_choice_again(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(40)
        ana = visitor("ana")
        ana.visit(f"{INBOX}?kind=new_lesson")
        row = ana.page.locator("[data-rows] > li").nth(30)
        row.locator("a.cover").click()
        ana.page.wait_for_url(f"**item={items[30].pk}*")
        ana.settled()
        before = place(ana)
        assert before["visible"]
        ana.press("g", "h")
        ana.page.wait_for_url("**/review/health/")
        ana.page.go_back()
        ana.page.locator("#card-title", has_text=words(items[30].subject)).wait_for()
        ana.settled()
        assert place(ana) == before
        assert ana.page.locator("#rail a[aria-current=page]").inner_text().startswith("Inbox")


def place(someone: Visitor) -> dict[str, Any]:
    """The filter, how far the list and the page are scrolled, and the chosen row."""
    return dict(
        someone.page.evaluate(
            """() => {
              const list = document.querySelector("[data-rows]"), row = list.querySelector("[aria-current]");
              const [outer, inner] = [list.getBoundingClientRect(), row.getBoundingClientRect()];
              return {
                kind: document.getElementById("kind").value, chosen: row.innerText, rows: list.children.length,
                list: Math.round(list.scrollTop), page: Math.round(scrollY),
                visible: inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1,
              };
            }"""
        )
    )


class TestPuttingOff:
    def test_a_question_waits_in_its_list_and_can_be_called_back(self, visitor: Enter, scene: Account) -> None:
        first, second, third = new_lessons(3)
        ana = visitor("ana")
        ana.visit(INBOX)
        ana.press("z", "Control+Enter")
        ana.told("Snoozed.")
        assert ana.pressed == 2
        assert on_card(ana) == words(second.subject)
        assert listed(ana, "new") == [words(second.subject), words(third.subject)]
        assert listed(ana, "snoozed") == [words(first.subject)]
        ana.page.get_by_role("button", name="Cancel the snooze").click()
        ana.told("Back among the open questions.")
        assert listed(ana, "snoozed") == []
        assert listed(ana, "new")[0] == words(first.subject)

    def test_a_question_returns_at_its_day_after_its_servings_and_when_it_worsens(
        self, visitor: Enter, scene: Account, settings: Any
    ) -> None:
        settings.SONDER_TRUST_POLICY = "trial"
        make_callers(scene)
        dated, served, worse, other = new_lessons(4)
        LessonStanding.objects.create(
            pk=worse.subject, policy="trial", wins=3, losses=2, s=0.5, on_trial=False, version=1, evidence={}
        )
        ana = visitor("ana")
        ana.visit(INBOX)
        day = f"{timezone.now() + timedelta(days=3):%Y-%m-%d}"
        for item, choice, amount in ((dated, "date", day), (served, "servings", "2"), (worse, "worse", "")):
            assert on_card(ana) == words(item.subject)
            ana.press("z")
            ana.page.locator(f"dialog input[value={choice}]").check()
            if amount:
                ana.page.locator(f"#until-{choice}").fill(amount)
            ana.press("Control+Enter")
            ana.told("Snoozed.")
        assert listed(ana, "new") == [words(other.subject)]
        assert listed(ana, "snoozed") == [words(item.subject) for item in (dated, served, worse)]
        assert listed(ana, "returned") == []

        serve(scene, "once", [Lesson.objects.get(pk=served.subject)])
        LessonStanding.objects.filter(pk=worse.subject).update(s=0.4)
        assert review_priority.run()["woken"] == 0
        for item, happens, why in (
            (worse, lambda: LessonStanding.objects.filter(pk=worse.subject).update(s=0.6), "until it worsened"),
            (served, lambda: serve(scene, "again", [Lesson.objects.get(pk=served.subject)]), "handed out 2 times"),
            (dated, lambda: ReviewItem.objects.filter(pk=dated.pk).update(snoozed_until=timezone.now()), "until "),
        ):
            happens()
            assert words(item.subject) in listed(ana, "returned")
            assert words(item.subject) not in listed(ana, "snoozed")
            ana.visit(f"{INBOX}?tab=returned&item={item.pk}")
            notice = ana.page.locator(".card .notice:visible").inner_text()
            assert notice.startswith("Returned: it waited")
            assert why in notice
        assert review_priority.run()["woken"] == 3
        assert len(listed(ana, "returned")) == 3


def listed(someone: Visitor, tab: str) -> list[str]:
    """The lessons under a tab, the most urgent first."""
    someone.visit(f"{INBOX}?tab={tab}")
    return someone.page.locator("[data-rows] a.cover").all_inner_texts()
