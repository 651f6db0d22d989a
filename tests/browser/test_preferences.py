"""Preferences in a browser: a change that meets another loses nothing, and going back is exact and itself undone."""

from collections.abc import Callable

import pytest

from memory.models import Account, EmbeddingSpace, Preference
from memory.services.preference import digest_of, state_of
from tests.browser.conftest import Visitor
from tests.browser.steps import Sparse, reword, sparse

Enter = Callable[..., Visitor]
ODD = "Keep  two spaces,\ta tab\n\nand “lines”: <b>é</b> e\u0301 \u202eright\u202c 🎛 &amp; all."


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Sparse:
    return sparse(Account.objects.create(slug="acme", name="Acme", review_policy="auto"))


def address(preference: Preference, *parts: str) -> str:
    return "/".join(["/review/preferences", str(preference.pk), *parts, ""])


def return_to_earlier(someone: Visitor, reason: str = "1") -> None:
    """Three keys: the preview, the reason, and go."""
    someone.press("b")
    someone.page.locator("dialog[open] input[name=reason_code]:focus").wait_for()
    someone.page.keyboard.press(reason)
    someone.page.keyboard.press("Control+Enter")
    someone.page.locator(".toast").wait_for()


def fresh(preference: Preference) -> Preference:
    preference.refresh_from_db()
    return preference


class TestGoingBack:
    def test_takes_three_keys_is_exact_and_can_be_taken_back_the_same_way(self, visitor: Enter, scene: Sparse) -> None:
        found = scene.preference
        reword(found, ODD)
        wanted = digest_of(state_of(found))
        reword(found, "Answer in one paragraph.")
        mia = visitor("mia")
        mia.visit(address(found))
        mia.press("b")
        dialog = mia.page.locator("dialog[open]")
        dialog.locator("input[name=reason_code]:focus").wait_for()
        shown = dialog.inner_text()
        assert "It becomes version 4" in shown
        assert "What 1 refinement did is left behind" in shown
        assert "Because of “Answer in one paragraph.”." in shown
        assert dialog.locator("ins").count() > 0
        assert dialog.locator("del").count() > 0
        mia.page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        assert fresh(found).revision == 3, "looking at what would change changes nothing"
        return_to_earlier(mia)
        assert (fresh(found).revision, digest_of(state_of(found)), found.text) == (4, wanted, ODD)
        assert "Restored version 2 as version 4" in mia.page.locator(".toast").inner_text()
        mia.visit(address(found))
        return_to_earlier(mia)
        assert (fresh(found).revision, found.text) == (5, "Answer in one paragraph.")

    def test_needs_a_reason(self, visitor: Enter, scene: Sparse) -> None:
        reword(scene.preference, "Answer in one paragraph.")
        mia = visitor("mia")
        mia.visit(address(scene.preference))
        mia.press("b")
        mia.page.locator("dialog[open] input[name=reason_code]:focus").wait_for()
        mia.page.keyboard.press("Control+Enter")
        assert mia.page.locator("dialog[open] fieldset:invalid").count() == 1
        mia.page.locator("dialog[open] form").evaluate("form => form.noValidate = true")
        mia.page.locator("dialog[open] textarea").fill("Typed before the reason.")
        mia.page.keyboard.press("Control+Enter")
        mia.page.locator("#main .error[role=alert]").wait_for()
        assert mia.page.locator("#main textarea[name=note]").input_value() == "Typed before the reason."
        assert fresh(scene.preference).revision == 2

    def test_is_not_for_a_reviewer_who_is_told_why(self, visitor: Enter, scene: Sparse) -> None:
        reword(scene.preference, "Answer in one paragraph.")
        ana = visitor("ana")
        ana.visit(address(scene.preference))
        button = ana.page.get_by_role("button", name="Restore version 1")
        assert button.is_disabled()
        assert "role maintainer" in ana.page.locator(".decisions").inner_text()
        ana.press("b", "e")
        assert ana.page.locator("dialog[open]").count() == 0
        assert ana.page.url.endswith(address(scene.preference))
        ana.visit(address(scene.preference, "restore", "1"))
        assert ana.page.locator("#main form").count() == 0

    def test_from_an_old_page_shows_what_came_between_and_is_still_possible(
        self, visitor: Enter, scene: Sparse
    ) -> None:
        found = scene.preference
        first = found.text
        reword(found, "Answer in one paragraph.")
        mia = visitor("mia")
        mia.visit(address(found))
        mia.press("b")
        mia.page.locator("dialog[open] input[name=reason_code]:focus").wait_for()
        reword(found, "Answer with a table.")
        mia.page.keyboard.press("3")
        mia.page.keyboard.press("Control+Enter")
        mia.page.get_by_role("heading", name="It changed while you were at it").wait_for()
        assert mia.page.locator("dialog[open]").count() == 0
        assert "table" in mia.page.locator("section[aria-labelledby=theirs] ins").all_inner_texts()[-1]
        assert fresh(found).revision == 3
        mia.page.get_by_role("button", name="Apply mine on top").click()
        mia.page.locator(".toast").wait_for()
        assert (fresh(found).revision, found.text) == (4, first)


class TestEditing:
    def test_what_somebody_else_saved_meanwhile_loses_nothing_that_was_typed(
        self, visitor: Enter, scene: Sparse
    ) -> None:
        found, mine = scene.preference, "I prefer short answers in plain English,\nwith an example."
        base = found.text
        mia = visitor("mia")
        mia.visit(address(found, "edit"))
        mia.page.fill("#text", mine)
        mia.page.fill("#note", "Examples were missed.")
        mia.page.fill("#expected_outcome", "Fewer questions back.")
        reword(found, "I prefer long answers.")
        mia.page.locator("#note").press("Control+Enter")
        panels = {name: mia.page.locator(f"section[aria-labelledby={name}]") for name in ("base", "theirs", "mine")}
        panels["mine"].wait_for()
        assert base in panels["base"].inner_text()
        assert "long" in panels["theirs"].locator("ins").all_inner_texts()[0]
        assert "example" in panels["mine"].inner_text()

        mia.page.get_by_role("button", name="Edit").click()
        mia.page.locator("#text").wait_for()
        assert mia.page.input_value("#text") == mine
        assert mia.page.input_value("#note") == "Examples were missed."
        assert mia.page.input_value("#expected_outcome") == "Fewer questions back."
        assert fresh(found).revision == 2

        reword(found, "I prefer no answers.")
        mia.page.locator("#note").press("Control+Enter")
        mia.page.get_by_role("button", name="Apply mine on top").click()
        mia.page.locator(".toast").wait_for()
        assert (fresh(found).revision, found.text) == (4, mine)

    def test_who_reads_is_told_that_somebody_saved(self, visitor: Enter, scene: Sparse) -> None:
        mia = visitor("mia")
        mia.page.clock.install()
        mia.visit(address(scene.preference, "edit"))
        notice = mia.page.locator("[data-watch]")
        mia.page.clock.run_for(16_000)
        assert notice.is_hidden()
        mia.page.fill("#text", "Half a sen")
        reword(scene.preference, "I prefer long answers.")
        mia.page.clock.run_for(16_000)
        notice.wait_for(state="visible")
        assert mia.page.input_value("#text") == "Half a sen"
