"""A lesson's page in a browser: read without a key, decide in one or two, undo with one."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from memory.models import Adjudication, Lesson
from tests.browser.conftest import Visitor
from tests.browser.scene import Scene

Enter = Callable[..., Visitor]


def state(lesson: Lesson) -> str:
    return Lesson.objects.values_list("state", flat=True).get(pk=lesson.pk)


def lesson_page(someone: Visitor, lesson: Lesson) -> None:
    someone.visit(f"/review/lessons/{lesson.pk}/")


class TestReading:
    def test_says_why_it_is_kept_out_without_a_key_or_scrolling(self, visitor: Enter, scene: Scene) -> None:
        ana = visitor("ana")
        lesson_page(ana, scene.lessons["harmful"])
        why = ana.page.locator("section[aria-labelledby=why]")
        assert "12" in why.inner_text()
        box = why.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800
        bar = ana.page.locator(".decisions").bounding_box()
        assert bar is not None
        assert bar["y"] + bar["height"] <= 800

    def test_a_viewer_sees_the_buttons_disabled_with_the_reason(self, visitor: Enter, scene: Scene) -> None:
        vic = visitor("vic")
        lesson_page(vic, scene.lessons["harmful"])
        buttons = vic.page.locator(".decisions button")
        assert buttons.count() >= 4
        assert all(buttons.nth(n).is_disabled() for n in range(buttons.count()))
        assert "role reviewer" in vic.page.locator(".decisions").inner_text()
        vic.press("q", "t")
        assert Adjudication.objects.count() == 0


class TestDeciding:
    def test_reject_takes_two_keys_and_undo_one(self, visitor: Enter, scene: Scene) -> None:
        ana, lesson = visitor("ana"), scene.lessons["good"]
        lesson_page(ana, lesson)
        ana.press("t")
        assert ana.page.locator("dialog[open]").count() == 1
        ana.press("3")
        ana.page.wait_for_selector(".toast")
        assert state(lesson) == "rejected"
        made = Adjudication.objects.get()
        assert (made.verdict, made.reason_code) == ("reject", "harmful")
        assert "Rejected." in ana.page.locator("#status").inner_text()
        assert ana.focus.startswith("H1")
        ana.press("u")
        ana.told("Undone")
        assert state(lesson) == "active"

    def test_uphold_takes_one_key(self, visitor: Enter, scene: Scene) -> None:
        ana, lesson = visitor("ana"), scene.lessons["harmful"]
        lesson_page(ana, lesson)
        ana.press("q")
        ana.page.wait_for_selector(".toast")
        assert Adjudication.objects.get().verdict == "uphold"
        assert state(lesson) == "quarantined"

    def test_letters_decide_nothing_while_a_note_is_typed(self, visitor: Enter, scene: Scene) -> None:
        ana = visitor("ana")
        lesson_page(ana, scene.lessons["good"])
        ana.press("t")
        ana.page.locator("#ask-note").click()
        ana.page.keyboard.type("a r u 1 2 3")
        assert Adjudication.objects.count() == 0
        assert ana.page.locator("#ask-note").input_value() == "a r u 1 2 3"
        ana.page.keyboard.press("Escape")
        ana.page.keyboard.press("Escape")
        assert ana.page.locator("dialog[open]").count() == 0
        assert Adjudication.objects.count() == 0

    def test_ten_fast_presses_decide_once(self, visitor: Enter, scene: Scene) -> None:
        ana = visitor("ana")
        lesson_page(ana, scene.lessons["harmful"])

        def slowly(route: Route) -> None:
            ana.page.wait_for_timeout(500)
            route.continue_()

        ana.page.route("**/review/decide/", slowly)
        for _ in range(10):
            ana.page.keyboard.press("q")
        ana.page.wait_for_selector(".toast")
        assert Adjudication.objects.count() == 1

    def test_who_comes_second_is_shown_what_happened_and_keeps_the_note(self, visitor: Enter, scene: Scene) -> None:
        ana, ben, lesson = visitor("ana"), visitor("ben"), scene.lessons["good"]
        lesson_page(ana, lesson)
        lesson_page(ben, lesson)
        ben.press("t")
        ben.page.locator("#ask-note").fill("It hides the real cause.")
        ana.press("t", "1")
        ana.page.wait_for_selector(".toast")
        ben.page.locator("input[value=outdated]").check()
        ben.page.locator("#ask-note").press("Control+Enter")
        ben.page.wait_for_selector("text=This changed since you looked")
        shown = ben.page.locator("#main").inner_text()
        assert "ana" in shown
        assert "It hides the real cause." in shown
        assert Adjudication.objects.count() == 1

    @pytest.mark.parametrize("verdict", ["reject", "edit"])
    def test_works_without_javascript(self, visitor: Enter, scene: Scene, verdict: str) -> None:
        ana, lesson = visitor("ana", java_script_enabled=False), scene.lessons["good"]
        lesson_page(ana, lesson)
        ana.page.locator(f"#do-{verdict}").click()
        if verdict == "edit":
            ana.page.fill("#ask-text", "Pass `timeout=30` to every `requests.get()` call.")
        else:
            ana.page.check("input[value=wrong]")
        ana.page.locator("#main button.primary").click()
        assert state(lesson) == {"reject": "rejected", "edit": "superseded"}[verdict]

    def test_with_keys_off_nothing_fires_and_the_buttons_work(self, visitor: Enter, scene: Scene) -> None:
        from review.models import Look

        Look.objects.create(
            user_id=Adjudication.reviewer.field.related_model.objects.get(username="ana").pk, keys=False
        )
        ana = visitor("ana")
        lesson_page(ana, scene.lessons["harmful"])
        ana.press("q", "t", "u")
        assert (Adjudication.objects.count(), ana.page.locator("dialog[open]").count()) == (0, 0)
        ana.page.locator("#do-uphold").click()
        ana.page.wait_for_selector(".toast")
        assert Adjudication.objects.count() == 1


class TestTwoPeople:
    def test_who_opens_a_question_holds_it_and_others_see_by_whom_until_it_is_left(
        self, visitor: Enter, scene: Scene
    ) -> None:
        ana, ben, lesson = visitor("ana"), visitor("ben"), scene.lessons["harmful"]
        with ana.page.expect_response("**/claim/"):
            lesson_page(ana, lesson)
        lesson_page(ben, lesson)
        assert "ana is reviewing" in ben.page.locator("#main").inner_text()
        with ana.page.expect_request("**/release/"):
            ana.press("g", "h")
        ana.page.wait_for_url("**/review/health/")
        ana.page.wait_for_timeout(300)
        lesson_page(ben, lesson)
        assert "is reviewing" not in ben.page.locator("#main").inner_text()
