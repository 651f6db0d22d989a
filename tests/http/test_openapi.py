"""The OpenAPI document says everything that the API does, and its pages load nothing from elsewhere."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator
from rest_framework.views import APIView

from memory.api import urls
from memory.api.permissions import scope_of
from memory.api.views.base import WriteView

ITSELF = {"schema/", "docs/", "docs/script.js"}
CONVERTER = re.compile(r"<\w+:(\w+)>")


@cache
def document() -> dict[str, Any]:
    return dict(SchemaGenerator().get_schema(request=None, public=True))


def operations() -> Iterator[tuple[str, str, type[APIView]]]:
    """Method, path and view of everything that `memory.api.urls` routes."""
    for pattern in urls.urlpatterns:
        assert isinstance(pattern, URLPattern)
        if str(pattern.pattern) in ITSELF:
            continue
        view: type[APIView] = pattern.callback.cls  # type: ignore[attr-defined]  # set by as_view
        path = "/api/v1/" + CONVERTER.sub(r"{\1}", str(pattern.pattern)).replace("{pk}", "{id}")
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, method):
                yield method, path, view


OPERATIONS = list(operations())
every_operation = pytest.mark.parametrize(("method", "path", "view"), OPERATIONS)


def described(method: str, path: str) -> dict[str, Any]:
    return dict(document()["paths"][path][method])


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the component that it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return dict(document()["components"]["schemas"][name]) if name else schema


def test_the_document_is_valid_and_generated_without_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(file))
    assert file.read_text().startswith("openapi: 3.")


def test_the_document_has_every_route_and_no_other() -> None:
    there = {(method, path) for path, item in document()["paths"].items() for method in item}
    assert there == {(method, path) for method, path, _ in OPERATIONS}
    assert len(there) > 10


@every_operation
def test_an_operation_documents_every_refusal_as_a_problem(method: str, path: str, view: type[APIView]) -> None:
    expected = {"400", "401", "403", "429", "503"}
    writes = method != "get" and issubclass(view, WriteView)
    if "{" in path or writes:
        expected.add("404")
    if method in {"post", "patch", "put"}:
        expected |= {"411", "413", "415"}
    if writes:
        expected.add("409")
    expected |= {str(status) for status in getattr(view, "refuses", {})}
    responses = described(method, path)["responses"]
    problems = {status: answer for status, answer in responses.items() if status >= "400"}
    assert set(problems) == expected
    for answer in problems.values():
        assert answer["content"] == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert "WWW-Authenticate" in problems["401"]["headers"]
    assert "Retry-After" in problems["429"]["headers"]
    assert f"`{scope_of(view(), method.upper())}`" in problems["403"]["description"]


@every_operation
def test_an_operation_documents_its_answer_and_says_what_it_does(method: str, path: str, view: type[APIView]) -> None:
    operation = described(method, path)
    answers = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    assert answers
    told = [
        kind["schema"] for status, answer in answers.items() if status != "204" for kind in answer["content"].values()
    ]
    assert told or "204" in answers
    assert all(told)
    assert len(operation["description"].split()) >= 3


@every_operation
def test_an_operation_takes_an_idempotency_key_if_and_only_if_it_writes(
    method: str, path: str, view: type[APIView]
) -> None:
    names = {parameter["name"] for parameter in described(method, path).get("parameters", [])}
    assert ("Idempotency-Key" in names) is (method != "get" and issubclass(view, WriteView))


def test_a_problem_requires_type_title_status_and_detail() -> None:
    assert document()["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail"]


def test_bodies_carry_the_limits_that_are_checked() -> None:
    body = resolved(described("post", "/api/v1/interactions/")["requestBody"]["content"]["application/json"]["schema"])
    assert body["required"] == ["task"]
    assert body["properties"]["task"]["maxLength"] == 20_000
    assert (body["properties"]["k"]["minimum"], body["properties"]["k"]["maximum"]) == (1, 50)
    assert body["properties"]["project"]["pattern"] == "^[a-z0-9][a-z0-9_.-]{0,62}$"
    assert body["additionalProperties"] is False


def test_the_body_of_a_patch_is_required_and_needs_at_least_one_field() -> None:
    body = described("patch", "/api/v1/interactions/{id}/")["requestBody"]
    assert body["required"] is True
    assert resolved(body["content"]["application/json"]["schema"])["minProperties"] == 1


class Page(HTMLParser):
    """What an HTML page loads, and what it would run or style by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._open = tag
        for name, value in attributes:
            if name in {"src", "href", "data-schema"}:
                self.loads.append(value or "")
            if name.startswith("on") or name == "style":
                self.inline.append(f"{name}={value}")

    def handle_data(self, data: str) -> None:
        if self._open in {"script", "style"} and data.strip():
            self.inline.append(data)


class TestTheBrowsableDocs:
    def test_load_everything_from_this_server(self) -> None:
        response = Client().get("/api/v1/docs/")
        assert response.status_code == 200
        page = Page(response.content.decode())
        assert len(page.loads) == 5
        for address in page.loads:
            assert re.match(r"/(?!/)", address), address
            response = Client().get(address)
            assert (response.status_code, bool(b"".join(response))) == (200, True), address

    def test_have_no_inline_script_or_style_and_a_policy_that_allows_none(self) -> None:
        response = Client().get("/api/v1/docs/")
        assert Page(response.content.decode()).inline == []
        policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in str(policy)

    def test_start_with_a_script_that_asks_no_other_host_to_validate(self) -> None:
        response = Client().get("/api/v1/docs/script.js")
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert "validatorUrl: null" in response.content.decode()
        assert "//" not in response.content.decode()

    def test_repeat_nothing_of_the_request(self) -> None:
        hostile = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
        plain = Client().get("/api/v1/docs/").content
        assert Client().get(f"/api/v1/docs/?script={hostile}&lang={hostile}&version={hostile}").content == plain


@pytest.mark.parametrize("query", ["", "?format=yaml", "?format=json", "?version=2&lang=x"])
def test_the_document_is_served_to_anyone(query: str) -> None:
    response = Client().get(f"/api/v1/schema/{query}")
    assert response.status_code == 200
    assert "/api/v1/interactions/" in response.content.decode()


def test_another_format_of_the_document_is_a_problem() -> None:
    response = Client().get("/api/v1/schema/?format=xml")
    assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")
    response = Client().get("/api/v1/schema/", headers={"Accept": "text/csv"})
    assert (response.status_code, response.json()["status"]) == (406, 406)
