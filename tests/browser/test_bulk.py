"""Many lessons at once in a browser: what is left out is named before and after, and all of it can be taken back."""

from collections.abc import Callable

import pytest

from memory.models import Account, Adjudication, EmbeddingSpace, Lesson, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import questions, review_queue
from memory.services.adjudication import decide
from tests.browser.conftest import Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import burst, named, new_lessons, on_card, state, words
from tests.services.people import decision

Enter = Callable[..., Visitor]
INBOX = "/review/inbox/"


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone; each test brings its questions."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


def states() -> dict[str, int]:
    """How many lessons are in each state."""
    found = list(Lesson.objects.values_list("state", flat=True))
    return {name: found.count(name) for name in sorted(set(found))}


class TestTheInbox:
    def test_thirty_are_rejected_with_five_keys_and_taken_back_with_one(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(30)
        ana = visitor("ana")
        ana.visit(f"{INBOX}?kind=new_lesson")
        held, changed = items[4], items[9]
        review_queue.claim(held.pk, named("ben"))
        questions.touch(changed.subject)

        ana.press("m", "Shift+M", "t")
        preview = ana.page.locator("dialog[open]")
        assert preview.locator("h1").inner_text() == "Reject: 28 of 30"
        left_out = preview.locator(".left-out li").all_inner_texts()
        texts = {item: Lesson.objects.get(pk=item.subject).text for item in (held, changed)}
        assert left_out == [f"{texts[held]} ben is reviewing it.", f"{texts[changed]} It changed since you looked."]
        assert Adjudication.objects.count() == 0

        ana.press("3", "Control+Enter")
        assert ana.pressed == 5
        ana.page.get_by_role("heading", name="28 of 30 applied").wait_for()
        assert ana.focus == "H1 28 of 30 applied"
        assert states() == {"candidate": 2, "rejected": 28}
        assert {state(item.subject) for item in (held, changed)} == {"candidate"}
        assert Adjudication.objects.filter(verdict="reject", reason_code="harmful").count() == 28

        ana.press("u")
        ana.page.get_by_role("heading", name="28 of 28 undone").wait_for()
        assert ana.pressed == 6
        assert states() == {"candidate": 30}
        assert ReviewItem.objects.filter(status="open").count() == 30

    def test_who_was_faster_is_named_after_deciding_and_after_undoing(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(6)
        ana = visitor("ana")
        ana.visit(INBOX)
        ana.press("m", "Shift+M", "a")
        assert ana.page.locator("dialog[open] h1").inner_text() == "Approve: 6 of 6"
        review_queue.claim(items[5].pk, named("ben"))
        ana.press("Control+Enter")
        ana.page.get_by_role("heading", name="5 of 6 applied").wait_for()
        left_out = ana.page.locator("section[aria-labelledby=left-out]").inner_text()
        assert "Left out: 1" in left_out
        assert "ben is reviewing it." in left_out

        decide(decision(named("ben"), Verdict.REJECT, items[2].subject))
        ana.press("u")
        ana.page.get_by_role("heading", name="4 of 5 undone").wait_for()
        refused = ana.page.locator("section[aria-labelledby=refused]").inner_text()
        assert "Not undone: 1" in refused
        assert Lesson.objects.get(pk=items[2].subject).text in refused
        assert "The lesson changed after this decision" in refused
        assert states() == {"candidate": 5, "rejected": 1}

    def test_a_cancelled_preview_leaves_the_marks_and_decides_nothing(self, visitor: Enter, scene: Account) -> None:
        items = new_lessons(5)
        ana = visitor("ana")
        ana.visit(INBOX)
        ana.press("j", "j", "m", "j", "j", "Shift+M", "q")
        ana.page.locator("dialog[open]").wait_for()
        ana.press("Escape")
        ana.page.locator("dialog[open]").wait_for(state="detached")
        marked = ana.page.locator("input[name=marked]")
        assert [marked.nth(n).is_checked() for n in range(5)] == [False, True, True, True, False]
        assert on_card(ana) == words(items[0].subject)
        assert Adjudication.objects.count() == 0


class TestABurstOfQuarantines:
    def test_is_one_row_that_six_keys_release_and_one_puts_back(self, visitor: Enter, scene: Account) -> None:
        burst(43)
        ana = visitor("ana")
        ana.visit("/review/")
        ana.press("g", "q")
        ana.page.wait_for_url("**/review/quarantine/")
        rows = ana.page.locator("[data-rows] a.cover")
        assert rows.all_inner_texts() == ["43 quarantined within an hour"]
        ana.press("m", "a")
        assert ana.page.locator("dialog[open] h1").inner_text() == "Release: 43 of 43"
        ana.press("1", "Control+Enter")
        assert ana.pressed == 6
        ana.page.get_by_role("heading", name="43 of 43 applied").wait_for()
        assert states() == {"active": 43}
        assert not ReviewItem.objects.filter(status="open").exists()

        ana.press("u")
        ana.page.get_by_role("heading", name="43 of 43 undone").wait_for()
        assert states() == {"quarantined": 43}
        ana.press("g", "q")
        ana.page.wait_for_url("**/review/quarantine/")
        assert rows.all_inner_texts() == ["43 quarantined within an hour"]

    def test_can_be_opened_and_decided_in_part(self, visitor: Enter, scene: Account) -> None:
        lessons = burst(22)
        ana = visitor("ana")
        ana.visit("/review/quarantine/")
        ana.press("2", "o")
        ana.page.wait_for_url("**?burst=*")
        assert ana.page.locator("[data-rows] a.cover").count() == len(lessons)
        ana.press("j", "m", "j", "j", "Shift+M", "q")
        assert ana.page.locator("dialog[open] h1").inner_text() == "Uphold: 3 of 3"
        ana.press("Control+Enter")
        ana.page.get_by_role("heading", name="3 of 3 applied").wait_for()
        assert Adjudication.objects.filter(verdict="uphold").count() == 3
        assert states() == {"quarantined": 22}
        ana.page.get_by_role("link", name="Go on").click()
        ana.page.wait_for_url("**?burst=*")
        ana.settled()
        assert ana.page.locator("[data-rows] a.cover").count() == 19
