"""The operators' pages: everything can be read, little can be changed, nothing that is evidence can be lost."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.models import (
    Account,
    ApiKey,
    Calibration,
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
)
from memory.models.base import new_id
from memory.search import embed_query
from memory.services import interaction, outcome
from memory.services.credit import credit
from memory.services.keys import caller_of, find_key
from memory.services.reading import evidence_of
from tests.conftest import Agent
from tests.models.rows import insert, new

pytestmark = pytest.mark.django_db

MODELS = list(apps.get_app_config("memory").get_models())
# The only pages with a save button, for an existing row or a new one.
CHANGED_HERE = {Account, Project, Membership, EmbeddingSpace}
ADDED_HERE = {Account, Project, Membership, ApiKey}
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)


@pytest.fixture
def pages(operator: Any) -> Client:
    """A browser in which the operator is logged in."""
    client = Client()
    client.force_login(operator)
    return client


def address(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:memory_{model._meta.model_name}_{page}", args=args)


def fill(model: type[Model], rows: int) -> Any:
    """Stores minimal rows; returns the id of the last."""
    table = model._meta.db_table
    apart = {"account_id": new("account")} if table == "source_sum" else {}  # one row a scope and source
    stored = [insert(table, **apart) for _ in range(rows)]
    assert model._meta.pk is not None
    return stored[-1][model._meta.pk.column]


def body(response: Any) -> str:
    return html.unescape(response.content.decode())


def test_every_model_has_its_pages() -> None:
    assert [model for model in MODELS if not admin.site.is_registered(model)] == []


class TestEveryList:
    @every_model
    def test_renders(self, pages: Client, model: type[Model]) -> None:
        pk = fill(model, 2)
        response = pages.get(address(model, "changelist"))
        assert response.status_code == 200
        assert f"/{pk}/change/" in body(response)

    @every_model
    def test_takes_as_many_queries_for_20_rows_as_for_one(self, pages: Client, model: type[Model]) -> None:
        pages.get(address(model, "changelist"))  # warms up what is read once a process
        counts = []
        for rows in (1, 19):
            fill(model, rows)
            with CaptureQueriesContext(connection, ) as queries:
                assert pages.get(address(model, "changelist")).status_code == 200
            counts.append(len(queries))
        assert counts[0] == counts[1]

    @every_model
    def test_finds_a_row_by_its_id_and_survives_words(self, pages: Client, model: type[Model]) -> None:
        fill(model, 2)
        for words in ("nothing has these words", "100%", "'", str(new_id())):
            response = pages.get(address(model, "changelist"), {"q": words})
            assert response.status_code == 200
            assert response.context["cl"].result_count == 0

    @every_model
    def test_has_search_and_filters(self, model: type[Model]) -> None:
        page = admin.site.get_model_admin(model)
        assert page.search_fields
        assert page.list_filter
        assert not page.show_full_result_count

    def test_comes_in_pages(self, pages: Client) -> None:
        fill(Comment, 51)
        assert body(pages.get(address(Comment, "changelist"))).count("/change/") == 50

    def test_finds_a_lesson_by_a_form_of_its_words_and_by_its_source(self, pages: Client) -> None:
        source = new_id()
        pk = insert("lesson", text="Bleed the fuel lines twice.", source_interaction=source)["id"]
        insert("lesson", text="Check the oil.")
        for words in ("bled fuel line", "bleeding", str(source), str(pk)):
            found = pages.get(address(Lesson, "changelist"), {"q": words}).context["cl"].queryset
            assert [lesson.pk for lesson in found] == ([] if words == "bled fuel line" else [pk])
