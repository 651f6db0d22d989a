"""A prune plan in a browser: applied once by who typed the number, never when the store has moved, undone in 3 keys."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import Account, EmbeddingSpace, Lesson, LessonTombstone, LessonUsage, PruneArchive
from memory.models.vocabulary import LessonState
from memory.services import quarantine
from tests.browser.conftest import Visitor
from tests.browser.steps import Sparse, planned, sparse

Enter = Callable[..., Visitor]


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Sparse:
    return sparse(Account.objects.create(slug="acme", name="Acme", review_policy="auto"))


def everything() -> dict[str, list[dict[str, Any]]]:
    return {
        "lessons": list(Lesson.objects.order_by("pk").values("pk", "text", "state", "origin")),
        "servings": list(LessonUsage.objects.order_by("pk").values("pk", "lesson_id", "interaction_id", "reward")),
        "graves": list(LessonTombstone.objects.order_by("pk").values("pk", "source_lesson", "reason")),
    }


def apply(someone: Visitor, count: int) -> None:
    someone.page.fill("#count", str(count))
    someone.page.keyboard.press("Control+Enter")
    someone.page.locator(".toast").wait_for()


def test_is_applied_once_however_often_and_restored_in_three_keys(visitor: Enter, scene: Sparse) -> None:
    made, before = planned(), everything()
    mia, other = visitor("mia"), visitor("mia")
    mia.visit(made.path)
    other.visit(made.path)
    mia.page.fill("#count", "1")
    mia.page.keyboard.press("Control+Enter")
    mia.page.locator(".error", has_text="you typed 1; 2 lessons would be merged").wait_for()
    assert PruneArchive.objects.count() == 0
    apply(mia, 2)
    assert "2 lessons merged" in mia.page.locator(".toast").inner_text()
    assert not Lesson.objects.filter(pk__in=[lesson.pk for lesson in made.going]).exists()
    archived, after = list(PruneArchive.objects.order_by("pk").values_list("pk", flat=True)), everything()

    apply(other, 2)
    assert list(PruneArchive.objects.order_by("pk").values_list("pk", flat=True)) == archived
    assert everything() == after
    assert other.page.locator("#do-apply").count() == 0

    mia.visit(made.path)
    mia.press("b")
    dialog = mia.page.locator("dialog[open]")
    dialog.locator("input[name=reason_code]:focus").wait_for()
    assert all(lesson.text in dialog.inner_text() for lesson in made.going)
    mia.page.keyboard.press("1")
    mia.page.keyboard.press("Control+Enter")
    mia.page.locator(".toast").wait_for()
    assert "2 lessons restored" in mia.page.locator(".toast").inner_text()
    assert everything() == before
    assert mia.page.get_by_role("button", name="Restore everything").is_disabled()


def test_of_a_store_that_has_moved_is_read_and_not_applied(visitor: Enter, scene: Sparse) -> None:
    made = planned()
    mia, before = visitor("mia"), everything()
    mia.visit(made.path)
    row = mia.page.locator(f"#row-{made.going[0].pk}")
    row.get_by_role("checkbox").uncheck()
    row.get_by_role("combobox").select_option("better_wording")
    row.get_by_label("Note").fill("It names the pool.")
    quarantine.move(made.kept[1].pk, LessonState.ACTIVE, LessonState.CANDIDATE)
    mia.page.fill("#count", "1")
    mia.page.keyboard.press("Control+Enter")
    alarm = mia.page.get_by_role("alert")
    alarm.get_by_text("The store has moved since this plan was made").wait_for()
    assert "Nothing was merged." in alarm.inner_text()
    assert made.kept[1].text.replace("`", "")[:40] in alarm.inner_text()
    shown = mia.page.locator("#main").inner_text()
    assert all(lesson.text.replace("`", "") in shown for lesson in [*made.kept, *made.going])
    assert "You wanted it to stay: The one to go is worded better. It names the pool." in shown
    assert mia.page.locator("#do-apply").is_disabled()
    assert mia.page.locator("#count").is_disabled()
    mia.page.locator("#do-apply").evaluate("button => button.form.requestSubmit()")  # what a script could still send
    mia.settled()
    assert PruneArchive.objects.count() == 0
    mia.page.get_by_role("button", name="Re-plan").click()
    mia.page.locator(".toast", has_text="Planned anew").wait_for()
    assert mia.page.locator("#do-apply").is_enabled()
    assert made.going[1].text.replace("`", "") not in mia.page.locator(".plan").inner_text()
    assert [row["text"] for row in everything()["lessons"]] == [row["text"] for row in before["lessons"]]


def test_is_not_for_a_reviewer_who_is_told_why(visitor: Enter, scene: Sparse) -> None:
    made = planned()
    ana = visitor("ana")
    ana.visit(made.path)
    assert ana.page.locator("#do-apply").is_disabled()
    assert "role maintainer" in ana.page.locator(".decisions").inner_text()
    assert ana.page.locator("#count").is_disabled()
    ana.visit(made.path + "restore/")
    assert ana.page.locator("#main form").count() == 0
