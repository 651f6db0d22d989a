"""Two lessons that say opposite things, in a browser: which goes, where each holds, or one in the place of both."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import Account, Adjudication, Contradiction, EmbeddingSpace, Lesson, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import contradiction, rejection
from memory.services.adjudication import decide
from tests.browser.axe import violations
from tests.browser.conftest import Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import becomes, holder, named, state
from tests.services.near import place
from tests.services.people import decision

Enter = Callable[..., Visitor]
QUEUE = "/review/contradictions/"
ALWAYS = "Always retry `fetch()` when it fails with a timeout."
NEVER = "Never retry `fetch()` when it fails with a timeout."
AGAIN = "Do not retry `fetch()` when it fails with a timeout."
ONE = "Retry `fetch()` after a timeout only where the call is idempotent."


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone; each test brings its pairs."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


@pytest.fixture
def found(scene: Account, space: EmbeddingSpace, lesson: Callable[..., Lesson]) -> Callable[..., list[Contradiction]]:
    """Stores lessons near each other, and lets the detector find what contradicts itself."""

    def detect(*texts: str, axis: int = 0) -> list[Contradiction]:
        known = set(Contradiction.objects.values_list("pk", flat=True))
        for text in texts:
            place(lesson(text), space, 0.95, axis=axis)
        contradiction.detect()
        return list(Contradiction.objects.exclude(pk__in=known).order_by("pk"))

    return detect


@pytest.fixture
def pair(found: Callable[..., list[Contradiction]]) -> Contradiction:
    return found(ALWAYS, NEVER)[0]


def text_of(subject: Any) -> str:
    return Lesson.objects.values_list("text", flat=True).get(pk=subject)


def states(pair: Contradiction) -> tuple[str, str]:
    return state(pair.first), state(pair.second)


def question(pair: Contradiction) -> ReviewItem:
    return ReviewItem.objects.get(subject=pair.pk)


def main(someone: Visitor) -> str:
    return someone.page.locator("#main").inner_text()


class TestTheKeyboard:
    @pytest.mark.parametrize(("key", "left"), [("1", ("active", "rejected")), ("2", ("rejected", "active"))])
    def test_a_clear_pair_takes_one_key_and_one_to_confirm(
        self, visitor: Enter, pair: Contradiction, key: str, left: tuple[str, str]
    ) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press(key, "1")
        ana.told("Kept")
        assert ana.pressed == 2
        assert states(pair) == left
        assert Adjudication.objects.get().reason_code == "more_right"
        assert ana.focus == "H1 Contradictions"
        ana.press("u")
        ana.told("Undone")
        assert states(pair) == ("active", "active")
        assert "Do these contradict each other?" in ana.visit(QUEUE).locator("h1").inner_text()

    def test_a_merge_is_one_step_from_both_wordings_and_one_back(self, visitor: Enter, pair: Contradiction) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("4")
        editor = ana.page.locator("dialog[open] #ask-text")
        assert editor.input_value() == f"{text_of(pair.first)}\n{text_of(pair.second)}"
        assert ana.focus.startswith("TEXTAREA")
        ana.page.keyboard.press("Control+a")
        ana.page.keyboard.type(ONE)
        assert Adjudication.objects.count() == 0, "letters and digits decide nothing while they are typed"
        ana.press("Control+Enter")
        ana.told("Made one of two.")
        assert states(pair) == ("superseded", "superseded")
        new = Lesson.objects.get(text=ONE)
        assert (new.state, new.supersedes, new.also_supersedes) == ("active", pair.first, pair.second)
        assert Contradiction.objects.get().verdict == "merge_both"
        ana.press("u")
        ana.told("Undone")
        assert (states(pair), state(new.pk)) == (("active", "active"), "superseded")
        assert question(pair).status == "open"

    def test_a_scope_for_each_is_one_step(self, visitor: Enter, pair: Contradiction) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("3")
        assert ana.page.locator("#ask-first_text").input_value() == text_of(pair.first)
        ana.page.keyboard.press("Home")
        ana.page.keyboard.type("For reads: ")
        ana.page.keyboard.press("Tab")
        ana.page.keyboard.press("Home")
        ana.page.keyboard.type("For writes: ")
        ana.press("Control+Enter")
        ana.told("Kept both.")
        made = {old: Lesson.objects.get(supersedes=old).text for old in (pair.first, pair.second)}
        assert made[pair.first].startswith("For reads: ")
        assert made[pair.second].startswith("For writes: ")

    def test_both_stay_as_they_are_where_no_scope_is_written(self, visitor: Enter, pair: Contradiction) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("3", "Control+Enter")
        ana.told("Kept both.")
        assert (states(pair), Lesson.objects.count()) == (("active", "active"), 2)

    def test_what_a_gate_refuses_stays_in_the_editor(self, visitor: Enter, pair: Contradiction) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("4")
        ana.page.locator("#ask-text").fill("Ask joe.doe@corp.example.com before a retry.")
        ana.press("Control+Enter")
        ana.page.locator("[role=alert]", has_text="something private").wait_for()
        assert "joe.doe" in ana.page.locator("#ask-text").input_value()
        assert states(pair) == ("active", "active")


class TestTheDetector:
    def test_no_contradiction_survives_a_rerun_and_returns_with_its_reason_after_an_edit(
        self, visitor: Enter, pair: Contradiction, space: EmbeddingSpace
    ) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("5")
        ana.page.locator("#ask-note").fill("One is about reads.")
        ana.page.locator("#ask-note").press("Control+Enter")
        ana.told("Marked as no contradiction.")

        assert contradiction.detect().raised == 0
        assert "No open contradiction" in ana.visit(QUEUE).locator("#main").inner_text()

        edited = rejection.supersede(
            pair.second, text_of(pair.second).replace("fails", "ends"), reviewer=named("ben").user_id
        )
        assert edited.lesson is not None, edited.verdict
        place(edited.lesson, space, 0.95)
        assert contradiction.detect().raised == 1
        ana.visit(QUEUE)
        shown = ana.page.locator("section[aria-labelledby=earlier]")
        assert "was replaced by an edited lesson" in shown.locator("h2").inner_text()
        assert shown.locator("del").text_content() == "removed: fails (end)"
        assert shown.locator("ins").text_content() == "added: ends (end)"
        assert "One is about reads." in shown.inner_text()
        assert "not a contradiction" in shown.inner_text()

    def test_its_score_is_nowhere_in_the_page_before_the_verdict(self, visitor: Enter, pair: Contradiction) -> None:
        Contradiction.objects.filter(pk=pair.pk).update(similarity=0.8765)
        ana = visitor("ana")
        ana.visit(QUEUE)
        assert "0.88" not in ana.page.content()
        assert pair.basis not in ana.page.content()
        ana.press("5", "1")
        ana.told("Marked")
        ana.visit(f"{QUEUE}{pair.pk}/")
        assert "0.88" in main(ana)
        assert pair.basis in main(ana)

    def test_a_set_of_three_is_one_and_its_rest_comes_next(
        self, visitor: Enter, found: Callable[..., list[Contradiction]]
    ) -> None:
        of_set = found(ALWAYS, NEVER, AGAIN)
        (apart,) = found("Always close `fetch()` after a read.", "Never close `fetch()` after a read.", axis=1)
        ReviewItem.objects.filter(subject=of_set[0].pk).update(priority=0.95)
        ReviewItem.objects.filter(subject=apart.pk).update(priority=0.9)
        ana = visitor("ana")
        ana.visit(QUEUE)
        assert "One of a set of 3" in main(ana)
        assert all(text.replace("`", "") in main(ana) for text in (ALWAYS, NEVER, AGAIN))
        ana.press("5", "1")
        ana.told("Marked")
        assert "close" not in ana.page.locator(".pair").inner_text()
        assert ana.focus == "H1 Do these contradict each other?"


class TestTwoPeople:
    def test_are_given_two_pairs_and_one_may_take_over(
        self, visitor: Enter, pair: Contradiction, found: Callable[..., list[Contradiction]]
    ) -> None:
        found("Always close `fetch()` after a read.", "Never close `fetch()` after a read.", axis=1)
        ana, ben = visitor("ana"), visitor("ben")
        ana.visit(QUEUE)
        becomes(ana, 1, lambda: ReviewItem.objects.exclude(claimed_by=None).count())
        hers = ReviewItem.objects.exclude(claimed_by=None).get()
        ben.visit(QUEUE)
        assert ben.page.locator(".pair").inner_text() != ana.page.locator(".pair").inner_text()
        becomes(ben, 2, lambda: ReviewItem.objects.exclude(claimed_by=None).count())

        ben.visit(f"{QUEUE}{hers.subject}/")
        assert "ana is reviewing this" in main(ben)
        ben.press("1", "2", "3", "4", "5")
        assert ben.page.locator("dialog[open]").count() == 0
        ben.page.get_by_role("button", name="Take over").click()
        becomes(ben, "ben", lambda: holder(hers))
        ben.page.locator("#do-none").wait_for()

    def test_who_leaves_lets_the_pair_go(self, visitor: Enter, pair: Contradiction) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        becomes(ana, "ana", lambda: holder(question(pair)))
        ana.press("g", "h")
        ana.page.wait_for_url("**/review/health/")
        becomes(ana, "", lambda: holder(question(pair)))

    def test_who_is_late_sees_what_was_decided_about_one_of_the_two_and_keeps_their_words(
        self, visitor: Enter, pair: Contradiction
    ) -> None:
        ana = visitor("ana")
        ana.visit(QUEUE)
        ana.press("4")
        ana.page.locator("#ask-text").fill(ONE)
        decide(decision(named("ben"), Verdict.REJECT, pair.second, reason_code="outdated"))
        ana.press("Control+Enter")
        ana.page.locator("h1", has_text="This changed since you looked").wait_for()
        assert "ben decided “Reject” about B" in main(ana)
        assert ONE in main(ana)
        assert ana.page.get_by_role("link", name="all the same").count() == 0
        assert (states(pair), Lesson.objects.filter(text=ONE).count()) == (("active", "rejected"), 0)


def test_all_of_it_works_without_javascript(visitor: Enter, pair: Contradiction) -> None:
    ana = visitor("ana", java_script_enabled=False)
    ana.visit(QUEUE)
    ana.page.get_by_role("button", name="Hold for ten minutes").click()
    assert holder(question(pair)) == "ana"
    ana.visit(QUEUE)
    ana.page.locator("#do-merge").click()
    ana.page.fill("#ask-text", ONE)
    ana.page.locator("#main button.primary").click()
    assert states(pair) == ("superseded", "superseded")
    assert "No open contradiction" in main(ana)


@pytest.mark.parametrize(("scheme", "narrow"), [("light", False), ("dark", True)])
def test_each_form_is_accessible_and_keeps_to_its_width(
    visitor: Enter, pair: Contradiction, found: Callable[..., list[Contradiction]], scheme: str, narrow: bool
) -> None:
    found(AGAIN)
    ana = visitor("ana", scheme=scheme, narrow=narrow)
    ana.visit(QUEUE)
    assert violations(ana.page) == []
    for action in ("both", "merge", "none"):
        ana.page.locator(f"#do-{action}").click()
        ana.page.locator("dialog[open] form").wait_for()
        ana.settled()
        assert violations(ana.page) == [], action
        assert not ana.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"), action
        ana.page.keyboard.press("Escape")
        ana.page.locator("dialog[open]").wait_for(state="detached")
