"""An address that was copied leads to what it named, whatever became of that: of a lesson, and of its question."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from memory.models import Account, EmbeddingSpace, Lesson, PrunePlan, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import applying, pruning
from memory.services.adjudication import decide
from memory.services.authority import Person
from tests.browser.scene_inbox import named
from tests.browser.steps import planned, sparse
from tests.services.near import place
from tests.services.people import decision, member

pytestmark = pytest.mark.django_db


@dataclass(frozen=True, kw_only=True)
class Store:
    """A question about a lesson, a plan, and who decides."""

    item: ReviewItem
    plan: PrunePlan
    mia: Person


@pytest.fixture
def store(account: Account) -> Store:
    subject = sparse(account).lesson.pk
    return Store(item=ReviewItem.objects.get(subject=subject), plan=planned().plan, mia=named("mia"))


@pytest.fixture
def page(client: Client, store: Store) -> Client:
    client.force_login(get_user_model().objects.get(username="mia"))
    return client


def at(page: Client, path: str) -> str:
    answer = page.get(path, follow=True)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def look(page: Client, lesson: UUID, item: ReviewItem) -> tuple[str, str]:
    return at(page, f"/review/lessons/{lesson}/"), at(page, f"/review/items/{item.pk}/")


def test_holds_through_every_state(page: Client, store: Store) -> None:
    lesson, text = store.item.subject, "timeout=10"
    for verdict in (Verdict.APPROVE, Verdict.QUARANTINE, Verdict.RELEASE, Verdict.REJECT, Verdict.RESTORE):
        of_lesson, of_item = look(page, lesson, store.item)
        assert text in of_lesson
        assert text in of_item
        decide(decision(store.mia, verdict, lesson))
    assert Lesson.objects.get(pk=lesson).state == "active"


def test_leads_on_from_a_wording_that_was_replaced(page: Client, store: Store) -> None:
    lesson, wording = store.item.subject, "Use `io.open(encoding='utf-8')` to read a text file."
    decide(decision(store.mia, Verdict.EDIT, lesson, data={"text": wording}))
    edited = Lesson.objects.get(supersedes=lesson)
    for shown in look(page, lesson, store.item):
        assert f"/review/lessons/{edited.pk}/" in shown


def test_of_a_merged_lesson_leads_to_the_one_that_was_kept_and_says_so(page: Client, store: Store) -> None:
    kept, gone = pruned(store.plan)
    question = ReviewItem.objects.create(kind="stale", subject=gone, status="open", priority=0.1, priority_parts={})
    applying.apply(None, store.plan.digest, actor="system")
    for path in (f"/review/lessons/{gone}/", f"/review/items/{question.pk}/"):
        answer = page.get(path)
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/review/lessons/{kept}/"), path
        assert "has become part of this one" in at(page, path)


def test_of_a_lesson_merged_twice_leads_to_the_last(
    page: Client, store: Store, lesson: Callable[..., Lesson], space: EmbeddingSpace
) -> None:
    kept, gone = pruned(store.plan)
    applying.apply(None, store.plan.digest, actor="system")
    text = "Always close each `cursor_0` before its connection goes back to the pool."
    third = place(lesson(text), space, 0.992, 0)
    applying.apply(None, pruning.current(None).digest, actor="system")
    assert not Lesson.objects.filter(pk=kept).exists()
    assert third.text in at(page, f"/review/lessons/{gone}/").replace("</code>", "`").replace("<code>", "`")


def test_of_anothers_lesson_is_not_found_before_and_after(
    client: Client, store: Store, account: Account, rival_account: Account
) -> None:
    Lesson.objects.filter(pk__in=pruned(store.plan)).update(account=account)
    _, gone = pruned(store.plan)
    rival = member(rival_account, "maintainer", "rob")
    client.force_login(get_user_model().objects.get(pk=rival.user_id))
    assert client.get(f"/review/lessons/{gone}/").status_code == 404
    applying.apply(None, store.plan.digest, actor="system")
    assert client.get(f"/review/lessons/{gone}/").status_code == 404


def pruned(plan: PrunePlan) -> tuple[UUID, UUID]:
    """A lesson that the plan keeps, and one that goes into it."""
    cluster = next(each for each in plan.clusters if "cursor_0" in Lesson.objects.get(pk=each["keeper"]).text)
    return UUID(cluster["keeper"]), UUID(cluster["members"][0]["lesson"])
