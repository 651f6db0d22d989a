"""Pages with nothing on them: each says why, in its own words, and none says that all is done when something failed."""

import re
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from memory.models import Account, EmbeddingSpace, JobRun, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import review_queue
from memory.services.adjudication import decide
from review.queries import contradictions, inbox, outcomes, preferences, quarantine
from review.views import dashboard
from tests.browser.conftest import Visitor
from tests.browser.scene import people
from tests.browser.scene_inbox import named, new_lessons, unjudged
from tests.services.people import decision

Enter = Callable[..., Visitor]
FIRST_USE = {
    "inbox/": "No questions yet",
    "quarantine/": "Nothing was ever quarantined",
    "contradictions/": "No contradiction yet",
    "outcomes/": "No work yet",
    "interactions/": "No work yet",
    "preferences/": "No preferences yet",
    "prune/": "No plan yet",
    "retrieval/": "Try a task",
    "retrieval/?q=Resize+the+photos": "No lesson is about this",
    "lessons/": "No lessons yet",
    "audit/": "Nothing was done yet",
    "inbox/?tab=second": "Nobody asks for a second opinion",
    "inbox/?tab=snoozed": "Nothing is snoozed",
}
NO_MATCH = {
    "inbox/?q=zebra": "Nothing matches",
    "lessons/?q=zebra": "No lesson matches",
    "preferences/?q=zebra": "No preference has these words",
    "interactions/?model=zebra": "Nothing matches",
    "audit/?actor=zebra": "Nothing matches",
}
DONE = re.compile(r"all done|nothing waits|no open|every question has its answer", re.IGNORECASE)


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Account:
    """The people alone, on the first day."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    people(account)
    return account


def empty(someone: Visitor, path: str) -> str:
    """What a page says where its content would be: a heading, a sentence, and at most one thing to do."""
    box = someone.visit(f"/review/{path}").locator("#main .empty")
    assert box.locator("h2, h3").count() == 1, path
    assert box.locator("p").last.inner_text().endswith("."), path
    assert box.locator("a, button").count() <= 1, path
    return box.inner_text()


def test_the_first_day_says_what_each_page_is_for(visitor: Enter, scene: Account) -> None:
    mia = visitor("mia")
    said = {path: empty(mia, path) for path in FIRST_USE}
    assert {path: words for path, words in FIRST_USE.items() if words not in said[path]} == {}
    assert [path for path, words in said.items() if DONE.search(words)] == []
    shown = mia.visit("/review/").locator("#main").inner_text()
    assert "Load demo data" in shown
    assert "Connect an agent" in shown
    shown = mia.visit("/review/health/").locator("#main").inner_text()
    assert "Nothing in this window was judged. About 30 more judgements are needed" in shown


def test_what_matches_nothing_says_so_and_leads_back(visitor: Enter, scene: Account) -> None:
    mia = visitor("mia")
    for path, words in NO_MATCH.items():
        assert words in empty(mia, path), path
        mia.page.locator(".empty a").click()
        mia.page.wait_for_url(f"**/review/{path.split('?')[0]}")


def test_all_done_and_held_by_others_are_told_apart(visitor: Enter, scene: Account) -> None:
    ana, ben = visitor("ana"), named("ben")
    first, second, third = new_lessons(3)
    decide(decision(named("ana"), Verdict.APPROVE, first.subject, first))
    review_queue.claim(second.pk, ben)
    decide(decision(named("mia"), Verdict.APPROVE, third.subject, third))
    shown = empty(ana, "inbox/")
    assert "Others are at it" in shown
    assert re.search(r"ben until \d\d:\d\d UTC", shown)
    assert "Others hold what is left" in empty(ana, "")

    second.refresh_from_db()
    decide(decision(ben, Verdict.APPROVE, second.subject, second))
    shown = empty(ana, "inbox/")
    assert "All done" in shown
    assert "1 decided, 0 skipped" in shown
    assert "You decided 1 today." in empty(ana, "")


def test_who_may_not_is_told_who_gives_the_role(visitor: Enter, scene: Account, django_user_model: Any) -> None:
    vic = visitor("vic")
    (work,) = unjudged(scene, 1)
    assert "Judging needs a role" in empty(vic, "outcomes/")
    assert "You read here" in empty(vic, "")
    review_queue.claim(ReviewItem.objects.get(subject=work.pk).pk, named("ben"))
    assert "ben is judging what is left" in empty(visitor("jo"), "outcomes/")
    django_user_model.objects.create_user("new")
    page = visitor("new").page
    page.goto(visitor(None).base + "/review/")
    assert "You have no role yet" in page.locator(".empty").inner_text()
    assert "olive" in page.locator(".empty").inner_text()


def test_a_run_of_a_job_is_said_to_go_on_or_not_to_have_ended(visitor: Enter, scene: Account) -> None:
    now = timezone.now()
    JobRun.objects.create(job="credit_sweep", started_at=now - timedelta(seconds=1))
    JobRun.objects.create(job="prune_plan", started_at=now - timedelta(days=2))
    JobRun.objects.create(job="embed_sweep", started_at=now, finished_at=now, outcome="done")
    page = visitor("mia").visit("/review/health/")
    for name, words in {
        "credit_sweep": "running now",
        "prune_plan": "did not end",
        "embed_sweep": "just now\t",
    }.items():
        assert words in page.locator("tr", has=page.get_by_role("rowheader", name=name)).inner_text(), name


class TestAFailure:
    def fail(self, *_: Any, **__: Any) -> None:
        raise DatabaseError("The connection is gone.")

    def test_of_one_tile_blanks_no_other_and_is_tried_again(
        self, visitor: Enter, scene: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (question,) = new_lessons(1)
        ana = visitor("ana")
        with monkeypatch.context() as patch:
            patch.setattr(dashboard, "_turn", self.fail)
            shown = ana.visit("/review/").locator("#main").inner_text()
        assert "What waits for you could not be read." in shown
        assert not DONE.search(shown)
        queues = ana.page.locator("section[aria-labelledby=queues]")
        assert queues.locator("li", has_text="Inbox").locator("strong").inner_text() == "1"
        assert "Last detector run" in shown
        ana.page.get_by_role("link", name="Try again").click()
        ana.page.locator("section[aria-labelledby=turn] a[href]", has_text="Start").wait_for()
        assert question.status == "open"

    @pytest.mark.parametrize("script", [True, False])
    def test_of_a_page_is_never_said_to_be_the_end_of_the_work(
        self, visitor: Enter, scene: Account, monkeypatch: pytest.MonkeyPatch, script: bool
    ) -> None:
        reads: list[tuple[str, ModuleType, str]] = [
            ("Inbox", inbox, "page"), ("Quarantine", quarantine, "places"), ("Contradictions", contradictions, "free"),
            ("Outcomes", outcomes, "queue"), ("Preferences", preferences, "listed"),
        ]  # fmt: skip
        for _, module, name in reads:
            monkeypatch.setattr(module, name, self.fail)
        ana = visitor("ana", java_script_enabled=script)
        for label, _, _ in reads:
            ana.visit("/review/")
            ana.settled()
            ana.page.locator("#rail").get_by_role("link", name=label).click()
            ana.page.get_by_role("heading", name="Something went wrong here").wait_for()
            assert not DONE.search(ana.page.locator("body").inner_text()), label
