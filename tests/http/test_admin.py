"""The operators' pages: everything can be read, little can be changed, nothing that is evidence can be lost."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import BigAutoField, Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.models import (
    Account,
    ApiKey,
    Comment,
    EmbeddingSpace,
    Interaction,
    Lesson,
    LessonDistillation,
    LessonStanding,
    LessonUsage,
    Membership,
    Outcome,
    Project,
    TrustEvent,
    WebhookEndpoint,
)
from memory.models.base import new_id
from memory.search import embed_query
from memory.services import interaction, outcome
from memory.services.credit import credit
from memory.services.keys import caller_of
from memory.services.reading import evidence_of
from tests.conftest import Agent
from tests.http.admin_pages import address, body
from tests.models.rows import insert, new

pytestmark = pytest.mark.django_db

MODELS = list(apps.get_app_config("memory").get_models())
# The only pages with a save button, for an existing row or a new one.
CHANGED_HERE = {Account, Project, Membership, EmbeddingSpace}
ADDED_HERE = {Account, Project, Membership, ApiKey, WebhookEndpoint}
KEYED_BY_UUID = [model for model in MODELS if not isinstance(model._meta.pk, BigAutoField)]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)


def fill(model: type[Model], rows: int) -> Any:
    """Stores minimal rows; returns the id of the last."""
    table, key = model._meta.db_table, model._meta.pk
    assert key is not None
    apart = {
        "source_sum": {"account_id": new("account")},  # one row a scope and source
        "lesson_embedding": {"space_id": new("embedding_space")},  # three dimensions, unlike the open space
    }.get(table, {})
    stored = [insert(table, **apart) for _ in range(rows)]
    return stored[-1][str(key.column)]


def test_every_model_has_its_pages() -> None:
    assert [model for model in MODELS if not admin.site.is_registered(model)] == []


class TestEveryList:
    @every_model
    def test_takes_as_many_queries_for_20_rows_as_for_one(self, pages: Client, model: type[Model]) -> None:
        pages.get(address(model, "changelist"))  # warms up what is read once a process
        counts = []
        for rows in (1, 19):
            pk = fill(model, rows)
            with CaptureQueriesContext(connection) as queries:
                answer = pages.get(address(model, "changelist"))
            assert answer.status_code == 200
            assert f"/{pk}/change/" in body(answer)
            counts.append(len(queries))
        assert counts[0] == counts[1]

    @every_model
    def test_answers_any_search(self, pages: Client, model: type[Model]) -> None:
        fill(model, 2)
        for words in ("nothing has these words", "100% it's", str(new_id())):
            assert pages.get(address(model, "changelist"), {"q": words}).context["cl"].result_count == 0

    @pytest.mark.parametrize("model", KEYED_BY_UUID, ids=lambda model: model._meta.model_name)
    def test_finds_a_row_by_its_id(self, pages: Client, model: type[Model]) -> None:
        fill(model, 1)
        pk = fill(model, 1)
        found = pages.get(address(model, "changelist"), {"q": f" {pk} "}).context["cl"].queryset
        assert [row.pk for row in found] == [pk]

    @every_model
    def test_has_search_and_filters(self, model: type[Model]) -> None:
        page = admin.site.get_model_admin(model)
        assert page.search_fields
        assert page.list_filter
        assert not page.show_full_result_count

    def test_comes_in_pages(self, pages: Client) -> None:
        fill(Comment, 51)
        assert body(pages.get(address(Comment, "changelist"))).count("/change/") == 50

    @pytest.mark.parametrize("words", ["bleeding fuel line", "BLEED -oil", "source", "own"])
    def test_finds_a_lesson_by_any_form_of_its_words_and_by_ids(self, pages: Client, words: str) -> None:
        source = new_id()
        pk = insert("lesson", text="Bleed the fuel lines twice.", source_interaction=source)["id"]
        insert("lesson", text="Bleed the oil.")
        asked = {"source": str(source), "own": str(pk)}.get(words, words)
        found = pages.get(address(Lesson, "changelist"), {"q": asked}).context["cl"].queryset
        assert [lesson.pk for lesson in found] == [pk]


class TestEveryPage:
    @every_model
    def test_has_a_save_button_only_where_an_operator_decides(self, pages: Client, model: type[Model]) -> None:
        answer = pages.get(address(model, "change", fill(model, 1)))
        assert answer.status_code == 200
        assert ('name="_save"' in body(answer)) == (model in CHANGED_HERE)

    @every_model
    def test_refuses_a_change_where_none_is_the_operators(self, pages: Client, model: type[Model]) -> None:
        pk = fill(model, 1)
        before = model._default_manager.filter(pk=pk).values().get()
        status = pages.post(address(model, "change", pk), {}).status_code
        assert status == (200 if model in CHANGED_HERE else 403)  # 200 is the form again, with its errors
        assert model._default_manager.filter(pk=pk).values().get() == before

    @every_model
    def test_refuses_a_new_row_where_none_is_the_operators(self, pages: Client, model: type[Model]) -> None:
        before = model._default_manager.count()
        for ask in (pages.get, pages.post):
            assert ask(address(model, "add")).status_code == (200 if model in ADDED_HERE else 403)
        assert model._default_manager.count() == before

    @every_model
    def test_deletes_nothing_but_a_membership(self, pages: Client, model: type[Model]) -> None:
        pk = fill(model, 1)
        gone = model is Membership
        status = pages.post(address(model, "delete", pk), {"post": "yes"}).status_code
        assert status == (302 if gone else 403)
        assert model._default_manager.filter(pk=pk).exists() is not gone
        listed = body(pages.get(address(model, "changelist")))
        assert gone or "delete_selected" not in listed

    @every_model
    def test_is_closed_to_who_has_no_permission(self, model: type[Model]) -> None:
        pk = fill(model, 1)
        clerk = Client()
        clerk.force_login(get_user_model().objects.create_user("clerk", is_staff=True))
        assert clerk.get(address(model, "changelist")).status_code == 403
        assert clerk.get(address(model, "change", pk)).status_code == 403

    def test_sends_strangers_to_the_login(self) -> None:
        stranger = Client()
        stranger.force_login(get_user_model().objects.create_user("stranger"))
        for client in (Client(), stranger):
            answer = client.get(address(Lesson, "changelist"))
            assert answer.status_code == 302
            assert answer["Location"].startswith(reverse("admin:login"))

    def test_is_open_to_a_clerk_who_may_read(self) -> None:
        pk = fill(TrustEvent, 1)
        clerk = get_user_model().objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.add(Permission.objects.get(codename="view_trustevent"))
        client = Client()
        client.force_login(clerk)
        assert client.get(address(TrustEvent, "change", pk)).status_code == 200

    @pytest.mark.parametrize("model", [LessonDistillation])
    def test_never_shows_a_token_that_entitles_its_holder(self, pages: Client, model: type[Model]) -> None:
        token = new_id()
        pk = insert(
            "lesson_distillation",
            state="claimed",
            claim_token=token,
            owner="host",
            claimed_at="2026-01-01T00:00:00Z",
            lease_expires_at="2026-01-02T00:00:00Z",
        )["interaction_id"]
        assert str(token) not in body(pages.get(address(model, "change", pk)))


class TestOutcomes:
    @pytest.mark.parametrize("source", [None, "", "caller", "the boss"])
    def test_cannot_get_in_here_whatever_their_source(self, pages: Client, source: str | None) -> None:
        row = {"interaction": insert("interaction")["id"], "sequence": 1, "signal": "accepted", "reward": "0.80"}
        sent = row if source is None else {**row, "source": source}
        assert pages.post(address(Outcome, "add"), sent).status_code == 403
        assert not Outcome.objects.exists()

    @pytest.mark.parametrize("source", ["", "machine", "the boss"])
    def test_keep_their_source(self, pages: Client, source: str) -> None:
        pk = fill(Outcome, 1)
        assert pages.post(address(Outcome, "change", pk), {"source": source}).status_code == 403
        assert Outcome.objects.get(pk=pk).source == "caller"


class TestLessons:
    def read(self, pages: Client, lesson: Lesson) -> str:
        return body(pages.get(address(Lesson, "change", lesson.pk)))

    def test_show_their_standing_in_words_before_anybody_judged(
        self, pages: Client, lesson: Callable[[str], Lesson]
    ) -> None:
        page = self.read(pages, lesson("Bleed the fuel line before a restart of the pump."))
        assert "Nobody has judged work that it was handed out for yet." in page
        assert page.index("Nobody has judged") < page.index("Text sha256")

    def test_show_every_gate_in_numbers_and_words(
        self, pages: Client, agent: Agent, lesson: Callable[[str], Lesson]
    ) -> None:
        told = lesson("Bleed the fuel line before a restart of the pump.")
        for task in ("restart the fuel pump", "bleed the fuel line"):
            request = interaction.Start(task=task, k=1)
            started = interaction.start(caller_of(agent.key), request, embed_query(task))
            outcome.report(caller_of(agent.key), started.interaction.pk, "failed")
            credit(started.interaction.pk)
        page = self.read(pages, told)
        evidence = evidence_of(told)
        assert evidence["losses"] == 2
        for sentence in evidence["words"]:
            assert f"<p>{sentence}</p>" in page
        for gate in evidence["gates"]:
            assert re.search(rf"<th>{gate['name']}</th><td>{gate['value']:.4g}</td>", page)
            assert gate["words"] in page

    def test_link_to_their_usages_events_and_standing(self, pages: Client) -> None:
        pk = insert("lesson")["id"]
        usage, event = insert("lesson_usage", lesson_id=pk)["id"], insert("trust_event", lesson=pk)["id"]
        insert("lesson_standing", lesson_id=pk)
        for model in (LessonUsage, TrustEvent, LessonStanding):
            fill(model, 1)  # another lesson's
        page = body(pages.get(address(Lesson, "change", pk)))
        for model, wanted in ((LessonUsage, usage), (TrustEvent, event), (LessonStanding, pk)):
            (link,) = re.findall(rf'href="({address(model, "changelist")}\?[^"]*)"', page)
            found = pages.get(link).context["cl"].queryset
            assert [row.pk for row in found] == [wanted]

    def test_cannot_be_reworded_or_moved(self, pages: Client) -> None:
        pk = fill(Lesson, 1)
        answer = pages.post(address(Lesson, "change", pk), {"text": "Use petrol.", "state": "rejected"})
        assert answer.status_code == 403
        assert Lesson.objects.get(pk=pk).state == "active"

    def test_are_linked_from_journals_while_they_stand(self, pages: Client) -> None:
        pk = insert("lesson", text="Bleed the <b>fuel</b> line.")["id"]
        there, gone = insert("trust_event", lesson=pk), insert("trust_event", lesson=(lost := new_id()))
        link = f'<a href="{address(Lesson, "change", pk)}">'
        raw = pages.get(address(TrustEvent, "changelist")).content.decode()
        assert link + "Bleed the &lt;b&gt;fuel&lt;/b&gt; line.</a>" in raw
        assert str(lost) in raw
        assert address(Lesson, "change", lost) not in raw
        assert link in body(pages.get(address(TrustEvent, "change", there["id"])))
        assert str(lost) in body(pages.get(address(TrustEvent, "change", gone["id"])))


def test_a_subject_that_is_an_interaction_is_a_link_too(pages: Client) -> None:
    pk = insert("interaction", task="Fix the fuel pump")["id"]
    insert("comment", subject=pk)
    page = body(pages.get(address(Comment, "changelist")))
    assert f'<a href="{address(Interaction, "change", pk)}">Fix the fuel pump</a>' in page
