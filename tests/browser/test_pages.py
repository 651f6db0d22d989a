"""Every screen: accessible by axe's rules, within its width, and every key on a button that shows it."""

import os
from collections.abc import Callable

import pytest

from memory.models import ReviewItem
from review.keys import KEYS
from tests.browser.axe import violations
from tests.browser.conftest import Visitor
from tests.browser.scene import Scene

Enter = Callable[..., Visitor]
# In the everyday suite two of the four looks; all of them with LOOKS=all (make test-browser-full).
LOOKS = [("light", False), ("dark", True)]
if os.environ.get("LOOKS") == "all":
    LOOKS += [("light", True), ("dark", False)]

SCREENS = [
    "", "inbox/", "inbox/?tab=snoozed", "quarantine/", "contradictions/", "outcomes/", "interactions/", "preferences/",
    "prune/", "retrieval/", "retrieval/?q=call+the+payment+service", "health/", "health/thresholds/",
    "health/measured/", "health/measured/?report=trust&tables=1", "settings/", "audit/", "people/", "demo/",
    "keys/", "lessons/", "lessons/?q=nothing+says+this", "lessons/{harmful}/", "lessons/{good}/", "lessons/{waiting}/",
    "items/{item}/", "contradictions/{contradiction}/", "interactions/{work}/", "preferences/{preference}/",
    "preferences/{preference}/edit/", "decide/reject/?subject={good}&expected_version=1",
    "decide/edit/?subject={good}&expected_version=1",
]  # fmt: skip


def addresses(scene: Scene) -> list[str]:
    names = {name: lesson.pk for name, lesson in scene.lessons.items()} | {
        "contradiction": scene.contradiction.pk,
        "preference": scene.preference.pk,
        "work": scene.work["unjudged"].pk,
        "item": ReviewItem.objects.get(kind="new_lesson", subject=scene.lessons["waiting"].pk).pk,
    }
    return ["/review/" + screen.format(**names) for screen in SCREENS]


@pytest.mark.parametrize(("scheme", "narrow"), LOOKS)
def test_every_screen_is_accessible_and_keeps_to_its_width(
    visitor: Enter, scene: Scene, scheme: str, narrow: bool
) -> None:
    mia = visitor("mia", scheme=scheme, narrow=narrow)
    found: dict[str, list[str]] = {}
    for address in addresses(scene):
        page = mia.visit(address)
        wrong = violations(page)
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wrong.append("wider than the screen")
        doubles = page.evaluate(
            "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, n, all) => all.indexOf(id) !== n)"
        )
        wrong += [f"two elements have the id {name}" for name in doubles]
        if wrong:
            found[address] = wrong
    assert found == {}


@pytest.mark.parametrize(("scheme", "narrow"), LOOKS)
def test_the_login_is_accessible(visitor: Enter, scheme: str, narrow: bool) -> None:
    page = visitor(None, scheme=scheme, narrow=narrow).visit("/login/")
    assert violations(page) == []


def test_a_dialog_is_accessible(visitor: Enter, scene: Scene) -> None:
    ana = visitor("ana")
    ana.visit(f"/review/lessons/{scene.lessons['good'].pk}/")
    ana.press("t")
    ana.page.locator("dialog[open]").wait_for()
    assert violations(ana.page) == []


def test_every_key_on_a_page_is_in_the_table_and_shown_beside_its_button(visitor: Enter, scene: Scene) -> None:
    mia = visitor("mia")
    known = {(key.scope, key.key) for key in KEYS}
    for address in addresses(scene):
        page = mia.visit(address)
        bound = page.evaluate(
            "[...document.querySelectorAll('[data-key]')].map(e => [e.dataset.scope, e.dataset.key, "
            "e.checkVisibility() && !e.closest('[data-rows], table')])"  # a row's keys are for the row with the focus
        )
        assert {(scope, key) for scope, key, _ in bound} <= known, address
        visible = [key for scope, key, shown in bound if shown and scope != "go"]
        assert len(visible) == len(set(visible)), f"{address}: one key on two visible controls"


def test_no_key_is_bound_twice_in_a_scope_or_takes_one_of_the_browsers() -> None:
    bound = [(key.scope, key.key) for key in KEYS]
    assert len(bound) == len(set(bound))
    assert not [key for key in KEYS if "Control" in key.key or "Meta" in key.key or "Alt" in key.key]
    anywhere = {key.key for key in KEYS if key.scope in ("page", "go")}
    shadowed = {(key.scope, key.key) for key in KEYS if key.scope not in ("page", "go") and key.key in anywhere}
    assert shadowed == set()
