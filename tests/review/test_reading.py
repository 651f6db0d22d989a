"""Looking changes nothing, wherever one looks; and an address that was copied leads to what it named for ever."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from memory.models import Account, EmbeddingSpace, Lesson, PrunePlan, ReviewItem
from memory.models.vocabulary import Verdict
from memory.services import applying, pruning
from memory.services.adjudication import decide
from tests.browser.everywhere import SENT_TO, Store, addresses, furnish
from tests.browser.scene import build
from tests.services.near import place
from tests.services.people import decision, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(account: Account) -> Store:
    return furnish(build(account))


@pytest.fixture
def page(client: Client, store: Store) -> Client:
    """A maintainer's browser: who may do the most."""
    client.force_login(get_user_model().objects.get(pk=store.mia.user_id))
    return client


def rows() -> dict[str, Any]:
    """What every table holds: how many rows, and a digest of them and of where they lie, which any write moves."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        one = "SELECT '{0}', count(*), md5(string_agg(ctid::text || t::text, '|' ORDER BY ctid)) FROM \"{0}\" t"
        cursor.execute(" UNION ALL ".join(one.format(name) for (name,) in cursor.fetchall()))
        return {name: (count, digest) for name, count, digest in cursor.fetchall()}


def test_no_look_at_any_page_writes_anything(page: Client, store: Store) -> None:
    found = addresses(store)
    assert len(found) > 60
    page.get("/review/")
    before, failed = rows(), {}
    for address in found:
        answer = page.get(address)
        if answer.status_code not in (200, 302) and not address.endswith(
            "measured/report.json"
        ):  # there may be none yet
            failed[address] = answer.status_code
        for _ in answer if answer.streaming else ():
            pass  # a download writes, if it does, while it is read
    after = rows()
    assert [table for table in after if after[table] != before[table]] == []
    assert failed == {}


def test_what_is_only_sent_to_cannot_be_looked_at(page: Client, store: Store) -> None:
    for name in SENT_TO:
        address = reverse(f"review:{name}", kwargs=store.arguments(name)[0])
        assert page.get(address).status_code == 405, name


class TestAPermalink:
    """Of a lesson, and of the question about it."""

    def at(self, page: Client, path: str) -> str:
        answer = page.get(path, follow=True)
        assert answer.status_code == 200, path
        return str(answer.content.decode())

    def look(self, page: Client, lesson: UUID, item: ReviewItem) -> tuple[str, str]:
        return self.at(page, f"/review/lessons/{lesson}/"), self.at(page, f"/review/items/{item.pk}/")

    def test_holds_through_every_state(self, page: Client, store: Store) -> None:
        lesson, text = store.scene.lessons["waiting"].pk, "pathlib"
        for verdict in (Verdict.APPROVE, Verdict.QUARANTINE, Verdict.RELEASE, Verdict.REJECT, Verdict.RESTORE):
            of_lesson, of_item = self.look(page, lesson, store.item)
            assert text in of_lesson
            assert text in of_item
            decide(decision(store.mia, verdict, lesson))
        assert Lesson.objects.get(pk=lesson).state == "active"

    def test_leads_on_from_a_wording_that_was_replaced(self, page: Client, store: Store) -> None:
        lesson, wording = store.scene.lessons["waiting"].pk, "Use `io.open(encoding='utf-8')` to read a text file."
        decide(decision(store.mia, Verdict.EDIT, lesson, data={"text": wording}))
        edited = Lesson.objects.get(supersedes=lesson)
        for shown in self.look(page, lesson, store.item):
            assert f"/review/lessons/{edited.pk}/" in shown

    def test_of_a_merged_lesson_leads_to_the_one_that_was_kept_and_says_so(
        self, page: Client, store: Store, account: Account
    ) -> None:
        kept, gone = pruned(store.plan)
        question = ReviewItem.objects.create(kind="stale", subject=gone, status="open", priority=0.1, priority_parts={})
        applying.apply(None, store.plan.digest, actor="system")
        for path in (f"/review/lessons/{gone}/", f"/review/items/{question.pk}/"):
            answer = page.get(path)
            assert (answer.status_code, answer.headers["Location"]) == (302, f"/review/lessons/{kept}/"), path
            assert "has become part of this one" in self.at(page, path)
        assert page.get(f"/review/interactions/{store.scene.work['unjudged'].pk}/").status_code == 200

    def test_of_a_lesson_merged_twice_leads_to_the_last(
        self, page: Client, store: Store, lesson: Callable[..., Lesson], space: EmbeddingSpace
    ) -> None:
        kept, gone = pruned(store.plan)
        applying.apply(None, store.plan.digest, actor="system")
        text = "Always close each `cursor_0` before its connection goes back to the pool."
        third = place(lesson(text), space, 0.992, 0)
        applying.apply(None, pruning.current(None).digest, actor="system")
        assert not Lesson.objects.filter(pk=kept).exists()
        assert third.text in self.at(page, f"/review/lessons/{gone}/").replace("</code>", "`").replace("<code>", "`")

    def test_of_anothers_lesson_is_not_found_before_and_after(
        self, client: Client, store: Store, rival_account: Account
    ) -> None:
        Lesson.objects.filter(pk__in=pruned(store.plan)).update(account=store.scene.account)
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
