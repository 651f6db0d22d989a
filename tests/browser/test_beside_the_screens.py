"""The demo's page and banner, and warnings that were acknowledged: accessible, and done with the keyboard alone."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memory.models import AlertAcknowledgement, ReviewItem
from memory.services.demo import stage
from tests.browser.axe import violations
from tests.browser.conftest import Visitor
from tests.browser.scene import Scene

Enter = Callable[..., Visitor]
LOOKS = [("light", False), ("dark", True)]


@pytest.mark.parametrize(("scheme", "narrow"), LOOKS)
def test_the_banner_leads_to_the_demo_which_says_what_to_try(
    visitor: Enter, scene: Scene, scheme: str, narrow: bool
) -> None:
    stage.set_up()
    page = visitor("mia", scheme=scheme, narrow=narrow).visit("/review/")
    page.get_by_role("link", name="What to try, and how to remove it").click()
    page.get_by_role("heading", name="Remove the demo data").wait_for()
    assert page.get_by_role("button", name="Remove the demo data").is_disabled(), "she is no maintainer there"
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


@pytest.mark.parametrize(("scheme", "narrow"), LOOKS)
def test_a_warning_is_acknowledged_by_keyboard_and_folded_with_its_note(
    visitor: Enter, scene: Scene, scheme: str, narrow: bool
) -> None:
    ReviewItem.objects.update(created_at=timezone.now() - timedelta(days=9))
    page = visitor("mia", scheme=scheme, narrow=narrow).visit("/review/health/")
    warning = page.locator("li", has_text="A question has waited 9 days")
    warning.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Ben is back on Monday.")
    page.keyboard.press("Tab")
    assert violations(page) == []
    page.keyboard.press("Enter")
    folded = page.get_by_text("1 acknowledged")
    folded.wait_for()
    assert AlertAcknowledgement.objects.get().note == "Ben is back on Monday."
    folded.click()
    page.get_by_text("Ben is back on Monday.").wait_for()
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
