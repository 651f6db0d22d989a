"""An address of the admin may ask for anything: what cannot be looked up is a bad request, for every model."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from memory.models import Account

pytestmark = pytest.mark.django_db

MODELS = list(admin.site._registry)
# NUL, numbers beyond every column, what is no number, no id and no date, and a text without end.
VALUES = ("\x00", "a\x00b", "9" * 20, "-1", "99999", "nan", "'", "[]", "0" * 35 + "g", "x" * 20_000)
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def asked(model: type[Model]) -> Iterator[tuple[str, str]]:
    """Parameters that the model's list understands, each with every bad value.

    What is the same on every list is asked with another third of the values on each.
    """
    page, turn = admin.site._registry[model], MODELS.index(model)
    shared = ["q", "o", "p", "id", "pk__in", "_to_field"]
    for column in filter(None, (page.date_hierarchy, "created_at")):
        shared += [f"{column}__year", f"{column}__month"]
    yield from ((name, value) for name in shared for value in VALUES[turn % 3 :: 3])
    yield from ((name, value) for name in filters(page) for value in VALUES)


def filters(page: "admin.ModelAdmin[Any]") -> Iterator[str]:
    """Parameters of the filters beside a list."""
    for entry in page.list_filter:
        name = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(name, str):
            yield from (f"{name}__exact", f"{name}__id__exact", f"{name}__isnull", f"{name}__isempty")
        else:
            yield str(getattr(name, "parameter_name", ""))


@pytest.fixture
def pages(operator: object) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(operator)  # type: ignore[arg-type]  # the fixture is a user
    return client


@every_model
def test_no_filter_and_no_search_is_a_fault(pages: Client, model: type[Model]) -> None:
    address = list_of(model)
    answers = {(name, value[:9]): pages.get(address, {name: value}) for name, value in asked(model)}
    assert {
        key: answer.status_code for key, answer in answers.items() if answer.status_code not in (200, 302, 400)
    } == {}
    assert pages.get(address).status_code == 200


@every_model
def test_no_id_and_no_action_is_a_fault(pages: Client, model: type[Model]) -> None:
    address = list_of(model)
    answers = {value: pages.get(f"{address}{value}/change/") for value in ("%00", "-1", "9" * 20, "'", "_00")}
    answers |= {
        f"{action} {value}": pages.post(address, {"action": action, "_selected_action": value})
        for action in ("delete_selected", "revoke")
        for value in VALUES[:-1]
    }
    assert {
        key: answer.status_code for key, answer in answers.items() if answer.status_code not in (200, 302, 400)
    } == {}
    assert pages.get(address).status_code == 200


@pytest.mark.parametrize("value", VALUES)
def test_no_completion_is_a_fault(pages: Client, value: str) -> None:
    fields = {"app_label": "memory", "model_name": "project", "field_name": "account", "term": "a"}
    for name in fields:
        answer = pages.get(reverse("admin:autocomplete"), fields | {name: value})
        assert answer.status_code in (200, 400, 403), name


def test_a_bad_request_says_so_on_a_page(pages: Client) -> None:
    answer = pages.get(list_of(Account), {"q": "\x00"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_a_fault_without_a_question_stays_a_fault(pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("a fault of the product")

    monkeypatch.setattr(admin.site._registry[Account], "get_queryset", fail)
    assert pages.get(list_of(Account)).status_code == 500
