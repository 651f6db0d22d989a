"""Saying whether work went well: one key a verdict, and on a telephone with the thumb."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Locator

from memory.models import Account, EmbeddingSpace, Outcome, ReviewItem
from tests.browser.conftest import NARROW, Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import unjudged

Enter = Callable[..., Visitor]
QUEUE = "/review/outcomes/"


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone; each test brings its work."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


def said(work: UUID) -> list[tuple[str, str, str | None]]:
    """What was reported of a piece of work, oldest first."""
    rows = Outcome.objects.filter(interaction=work).order_by("sequence")
    return list(rows.values_list("source", "signal", "judge__username"))


def shown(someone: Visitor) -> str:
    """The request that is on the page."""
    return someone.page.locator("section[aria-labelledby=request] p").first.inner_text()


class TestTheKeyboard:
    def test_ten_verdicts_take_ten_keys(self, visitor: Enter, scene: Account) -> None:
        works = unjudged(scene, 11)
        jo = visitor("jo")
        jo.visit(QUEUE)
        keys = "wlwwslwlsw"
        for work, key in zip(works, keys, strict=False):
            assert shown(jo) == work.task
            jo.press(key)
            jo.told("Skipped." if key == "s" else "Judged.")
            assert jo.focus == "H1 Did this work?"
        assert jo.pressed == 10
        assert shown(jo) == works[10].task
        signals = {"w": [("caller", "accepted", "jo")], "l": [("caller", "rejected", "jo")], "s": []}
        assert [said(work.pk) for work in works[:10]] == [signals[key] for key in keys]
        assert ReviewItem.objects.filter(status="resolved").count() == 8
        jo.press("u")
        jo.told("Undone")
        assert said(works[9].pk)[-1] == ("caller", "retracted", "jo")

    def test_letters_of_a_note_judge_nothing_and_the_note_goes_with_the_verdict(
        self, visitor: Enter, scene: Account
    ) -> None:
        first, second = unjudged(scene, 2)
        jo = visitor("jo")
        jo.visit(QUEUE)
        jo.press("c")
        jo.page.keyboard.type("well wasted, slowly")
        assert not Outcome.objects.exists()
        jo.press("Escape", "l")
        jo.told("Judged.")
        assert Outcome.objects.values_list("interaction", "signal", "detail").get() == (
            first.pk, "rejected", "well wasted, slowly",
        )  # fmt: skip
        assert shown(jo) == second.task


class TestATelephone:
    def test_the_whole_round_goes_with_the_thumb(self, visitor: Enter, scene: Account) -> None:
        won, unclear, lost, last = unjudged(scene, 4)
        jo = visitor("jo", narrow=True)
        jo.visit(QUEUE)
        for work, button in ((won, "win"), (unclear, "skip"), (lost, "loss")):
            assert shown(jo) == work.task
            for name in ("win", "loss", "skip"):
                assert_in_reach(jo, f"#judge-{name}")
            tap(jo, jo.page.locator(f"#judge-{button}"))
        assert shown(jo) == last.task
        signals = {won: [("caller", "accepted", "jo")], unclear: [], lost: [("caller", "rejected", "jo")]}
        assert {work: said(work.pk) for work in signals} == signals
        tap(jo, jo.page.locator(".toast button", has_text="Undo"))
        jo.told("Undone")
        assert said(lost.pk)[-1] == ("caller", "retracted", "jo")


def tap(someone: Visitor, button: Locator) -> None:
    """Touches a button that sends something, and waits for the answer."""
    with someone.page.expect_response(lambda answer: answer.request.method == "POST"):
        button.tap()
    someone.settled()


def assert_in_reach(someone: Visitor, selector: str) -> None:
    """In the lower half of the screen without scrolling, as large as a thumb, and covered by nothing."""
    button: Any = someone.page.locator(selector)
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert box["width"] >= 44
    assert box["y"] >= NARROW["height"] / 2
    assert box["y"] + box["height"] <= NARROW["height"]
    assert 0 <= box["x"] <= box["x"] + box["width"] <= NARROW["width"]
    centre = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert someone.page.evaluate(
        "([x, y, selector]) => document.elementFromPoint(x, y).closest(selector) !== null", [*centre, selector]
    )
