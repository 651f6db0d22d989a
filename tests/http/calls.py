"""The API's operations and their fields as data, what a refusal must look like, and that it changed nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.apps import apps
from django.db import connection
from rest_framework.test import APIClient

INTERACTIONS = "/api/v1/interactions/"
RETRIEVE = "/api/v1/retrieve/"
LESSONS = "/api/v1/lessons/"
OUTCOMES = "/api/v1/outcomes/"
MISSING = "00000000-0000-7000-8000-000000000000"  # an id that nothing has


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a request body."""

    kind: str  # text, slug, integer, truth or signal
    required: bool = False
    nullable: bool = False
    blank: bool = False  # '' is a value
    limit: int = 0  # characters of a text, or the highest integer
    lowest: int = 0  # integer


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A request with a body."""

    name: str
    method: str
    path: str  # '{id}' stands for the interaction that the test has
    body: dict[str, Any]  # one that is accepted
    fields: dict[str, Field]
    success: int

    def url(self, interaction: str) -> str:
        return self.path.format(id=interaction)


TASK = Field(kind="text", required=True, limit=20_000)
PROJECT = Field(kind="slug", nullable=True, limit=63)
K = Field(kind="integer", limit=50, lowest=1)
COUNT = Field(kind="integer", nullable=True, limit=2_147_483_647)
TRUTH = Field(kind="truth")
START = Operation(
    name="start",
    method="POST",
    path=INTERACTIONS,
    body={"task": "sort the names"},
    success=201,
    fields={
        "task": TASK,
        "project": PROJECT,
        "session": Field(kind="text", nullable=True, limit=200),
        "tier": Field(kind="text", blank=True, limit=40),
        "model": Field(kind="text", blank=True, limit=200),
        "k": K,
        "retrieve": TRUTH,
    },
)
FINISH = Operation(
    name="finish",
    method="PATCH",
    path=INTERACTIONS + "{id}/",
    body={"response": "sorted(names)"},
    success=200,
    fields={
        "response": Field(kind="text", nullable=True, blank=True, limit=200_000),
        "tokens_in": COUNT,
        "tokens_out": COUNT,
        "token_source": Field(kind="text", blank=True, limit=40),
    },
)
REPORT = Operation(
    name="report",
    method="POST",
    path=INTERACTIONS + "{id}/outcomes/",
    body={"signal": "accepted"},
    success=201,
    fields={
        "signal": Field(kind="signal", required=True),
        "detail": Field(kind="text", blank=True, limit=10_000),
    },
)
LOOK_UP = Operation(
    name="look_up",
    method="POST",
    path=RETRIEVE,
    body={"task": "sort the names"},
    success=200,
    fields={"task": TASK, "project": PROJECT, "k": K, "explain": TRUTH},
)
OPERATIONS = {operation.name: operation for operation in (START, FINISH, REPORT, LOOK_UP)}


def raw(client: Any, method: str, path: str, body: bytes | str = b"", **extra: Any) -> Any:
    """A request with any body, by any test client."""
    return client.generic(method, path, body, **extra)


def send(client: APIClient, operation: Operation, interaction: str, body: object, **headers: str) -> Any:
    """The request with any body: bytes go as they are, all else as JSON with surrogates and NaN as Python has them."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/json"
    return raw(client, operation.method, operation.url(interaction), sent, content_type=kind, headers=headers)


def start(client: APIClient, task: str = "sort the names", **fields: object) -> dict[str, Any]:
    """A new interaction's answer."""
    response = client.post(INTERACTIONS, {"task": task, **fields}, format="json")
    assert response.status_code == 201, response.content
    return dict(response.json())


def report(client: APIClient, interaction: str, signal: str, **fields: object) -> Any:
    """An outcome's answer."""
    return client.post(f"{INTERACTIONS}{interaction}/outcomes/", {"signal": signal, **fields}, format="json")


def refused(response: Any, status: int, *fields: str) -> dict[str, Any]:
    """The problem document of a refusal (RFC 9457), which names exactly these fields."""
    assert response.status_code == status, response.content[:500]
    assert response.headers["Content-Type"] == "application/problem+json"
    document = json.loads(response.content)
    assert set(document) <= {"type", "title", "status", "detail", "errors"}
    assert (document["type"], document["title"]) == ("about:blank", HTTPStatus(status).phrase)
    assert document["status"] == status
    assert document["detail"]
    errors = document.get("errors", {})
    assert sorted(errors) == sorted(fields), errors
    assert all(sentence for sentences in errors.values() for sentence in sentences)
    return dict(document)


def contents() -> dict[str, str]:
    """A digest of every table's rows, but for when a key was last used."""
    tables = [model._meta.db_table for model in apps.get_app_config("memory").get_models()]
    statement = " UNION ALL ".join(
        f"SELECT '{table}', md5(coalesce(string_agg(r, '' ORDER BY r), '')) "
        f"FROM (SELECT (to_jsonb(t) - 'last_used_at')::text AS r FROM {table} t) AS rows"
        for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return dict(cursor.fetchall())


@contextmanager
def nothing_changes() -> Iterator[None]:
    """Every row of every table is afterwards what it was before."""
    before = contents()
    yield
    assert contents() == before
