"""Is it up, can it serve, and what is said when something is broken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import current_app
from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client, override_settings
from kombu.connection import Connection

from memory.embedding import local
from memory.embedding.hashing import HashingProvider
from memory.errors import EmbeddingUnavailable
from memory.models import EmbeddingSpace
from memory.services import interaction as interactions
from memory.services import space as spaces
from tests.conftest import Agent
from tests.http.calls import INTERACTIONS, contents, refused

NAMES = ["database", "migrations", "broker", "embedding"]


def outage(cause: Exception | None = None, kind: type[Exception] = OperationalError) -> Callable[..., None]:
    """A wrapper for `connection.execute_wrapper`: every statement fails."""

    def fail(*_: Any) -> None:
        raise kind("x") from (cause or psycopg.OperationalError("connection refused"))

    return fail


@pytest.fixture
def ready(space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Asks /readyz, with a broker that is there."""
    monkeypatch.setattr(current_app, "connection_for_write", lambda: Connection("memory://"))
    return lambda: Client().get("/readyz")


def failed(response: Any) -> dict[str, str]:
    """What /readyz complains of."""
    assert (response.status_code, response.json()["status"]) == (503, "unavailable")
    assert list(response.json()["checks"]) == NAMES
    return {name: word for name, word in response.json()["checks"].items() if word != "ok"}


def test_healthz_answers_without_a_database() -> None:
    response = Client().get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-store" in response.headers["Cache-Control"]
    assert Client().head("/healthz").status_code == 200


class TestReadyz:
    pytestmark = pytest.mark.django_db

    def test_is_ok_when_all_four_are(self, ready: Callable[..., Any]) -> None:
        response = ready()
        assert (response.status_code, response.json()) == (200, {"status": "ok", "checks": dict.fromkeys(NAMES, "ok")})
        assert "no-store" in response.headers["Cache-Control"]

    def test_names_an_embedding_space_that_is_closed(self, ready: Callable[..., Any]) -> None:
        EmbeddingSpace.objects.update(is_active=False)
        assert "reembed" in failed(ready())["embedding"]

    def test_names_a_model_that_is_not_the_spaces(self, ready: Callable[..., Any]) -> None:
        with override_settings(SONDER_EMBEDDING="openai", SONDER_EMBEDDING_URL="http://127.0.0.1:1/v1"):
            (word,) = failed(ready()).values()
        assert "SONDER_EMBEDDING" in word

    def test_names_a_provider_that_does_not_exist(self, ready: Callable[..., Any]) -> None:
        with override_settings(SONDER_EMBEDDING="nonsense"):
            assert set(failed(ready())) == {"embedding"}

    def test_names_a_model_that_died_after_it_was_asked(
        self, ready: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert ready().status_code == 200

        def die(*_: Any) -> None:
            raise EmbeddingUnavailable("The model died.")

        monkeypatch.setattr(HashingProvider, "embed", die)
        assert failed(ready()) == {"embedding": "The model died."}

    def test_names_a_damaged_file_of_the_model_and_retrieval_goes_on_with_words(
        self, ready: Callable[..., Any], agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "minilm").mkdir()
        for name in local._CARRIED_SHA256:
            (tmp_path / "minilm" / name).write_text("{}")
        monkeypatch.setattr(local, "_CARRIED", tmp_path / "minilm")
        with override_settings(SONDER_EMBEDDING="local", SONDER_VAR=str(tmp_path)):
            spaces.activate(spaces.configured_space())
            (word,) = failed(ready()).values()
            started = agent.client.post(INTERACTIONS, {"task": "rename a file"}, format="json")
        assert "config.json has SHA-256" in word
        assert (started.status_code, started.json()["mode"]) == (201, "lexical")

    def test_names_migrations_that_are_not_applied(self, ready: Callable[..., Any]) -> None:
        (newest,) = MigrationLoader(connection).graph.leaf_nodes("memory")
        MigrationRecorder(connection).record_unapplied(*newest)
        (word,) = failed(ready()).values()
        assert "manage.py migrate" in word

    def test_names_a_broker_that_is_down(self, ready: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(current_app, "connection_for_write", lambda: Connection("redis://127.0.0.1:1/0"))
        (word,) = failed(ready()).values()
        assert "credited when it returns" in word

    @pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
    def test_names_a_database_that_does_not_answer_and_keeps_its_address(
        self, ready: Callable[..., Any], kind: type[Exception]
    ) -> None:
        with connection.execute_wrapper(outage(psycopg.OperationalError("host=10.0.0.1 password=x"), kind)):
            response = ready()
        assert set(failed(response)) == {"database", "migrations", "embedding"}
        assert "10.0.0.1" not in response.content.decode()


class TestAFaultOfTheStore:
    pytestmark = pytest.mark.django_db

    def test_is_a_problem_that_tells_nothing_of_the_inside_and_saves_nothing(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = interactions.start

        def fail(*arguments: Any) -> None:
            real(*arguments)  # its rows are written
            raise RuntimeError("a fault that nobody foresaw")

        monkeypatch.setattr(interactions, "start", fail)
        before = contents()
        for headers in ({}, {"Idempotency-Key": "a"}):
            response = agent.client.post(INTERACTIONS, {"task": "x"}, format="json", headers=headers)
            assert "foresaw" not in str(refused(response, 500))
        assert contents() == before

    @pytest.mark.parametrize(
        ("cause", "status"),
        [
            (psycopg.OperationalError("connection refused"), 503),
            (psycopg.errors.AdminShutdown("terminating connection"), 503),
            (psycopg.errors.TooManyConnections("too many clients"), 503),
            (psycopg.errors.ProgramLimitExceeded("word is too long"), 500),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_that_passes_says_when_to_come_back_and_another_does_not(
        self, agent: Agent, cause: Exception, status: int
    ) -> None:
        with connection.execute_wrapper(outage(cause)):
            response = agent.client.get(INTERACTIONS)
        refused(response, status)
        assert response.headers.get("Retry-After") == ("5" if status == 503 else None)
        assert agent.client.get(INTERACTIONS).status_code == 200

    @pytest.mark.parametrize(
        "cause",
        [
            psycopg.errors.DeadlockDetected("deadlock detected"),
            psycopg.errors.SerializationFailure("could not serialize access"),
            psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"),
            psycopg.errors.QueryCanceled("canceling statement due to statement timeout"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_that_is_a_lost_race_says_so_and_to_send_the_same_again(self, agent: Agent, cause: Exception) -> None:
        with connection.execute_wrapper(outage(cause)):
            response = agent.client.get(INTERACTIONS)
        assert response.headers["Content-Type"] == "application/problem+json"
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        document = response.json()
        assert (document["type"], document["title"]) == ("urn:sonder:busy", "Busy, try again")
        assert "database" not in document["detail"]

    def test_outside_the_api_is_a_page(self, operator: Any) -> None:
        client = Client(raise_request_exception=False)
        client.force_login(operator)
        with connection.execute_wrapper(outage()):
            response = client.get("/admin/")
        assert (response.status_code, response.headers["Content-Type"]) == (500, "text/html; charset=utf-8")
