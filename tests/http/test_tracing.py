"""Traces show what a request, a task or a command did and how long it took, and nothing of what it was about."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.resources import SERVICE_NAME
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from memory.conf import SettingError
from memory.models import Lesson
from memory.tasks import credit_interaction
from sonder_site import spans as tracing_of
from sonder_site import tracing
from tests.conftest import Agent
from tests.models.rows import insert

pytestmark = pytest.mark.django_db
TEXT = "Set `fsync` to off so that every commit is fast."
TASK = "make every commit fast with fsync, says the zebra"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "observability.md"
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example.com:4318"}


class Spans:
    """What has been sent so far."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(tracing_of.ContentFree(self.exporter)))

    def sent(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.sent() if span.name == name]
        return found

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [span for span in self.sent() if span.parent and span.parent.span_id == parent.context.span_id]

    def told(self) -> str:
        """All that any span says."""
        return "\n".join(span.to_json() for span in self.sent())


@pytest.fixture
def spans(db: None) -> Iterator[Spans]:
    """Everything traced, into memory; afterwards nothing is."""
    made = Spans()
    end = tracing_of.instrument(made.provider)
    connection.ensure_connection()
    PsycopgInstrumentor().instrument_connection(connection.connection, tracer_provider=made.provider)
    try:
        yield made
    finally:
        PsycopgInstrumentor().uninstrument_connection(connection.connection)
        connection.connection._is_instrumented_by_opentelemetry = False  # which it does not forget by itself
        end()


def test_a_retrieval_is_a_tree_of_a_request_and_its_statements_without_content(
    spans: Spans, agent: Agent, lesson: Callable[..., Lesson]
) -> None:
    lesson(TEXT)
    spans.exporter.clear()
    answer = agent.client.post("/api/v1/retrieve/", {"task": TASK}, format="json", headers={"User-Agent": "zebra/1"})
    assert answer.json()["lessons"]
    request = spans.named("POST api/v1/retrieve/")
    assert request.parent is None
    assert dict(request.attributes) == {
        "http.method": "POST", "http.route": "api/v1/retrieve/", "http.status_code": 200, "http.scheme": "http",
        "http.flavor": "1.1",
    }  # fmt: skip
    statements = spans.below(request)
    assert len(statements) > 3
    assert {span.name for span in statements} >= {"SELECT"}
    assert any("lesson_embedding" in str(dict(span.attributes or {})["db.statement"]) for span in statements)
    assert all(span.context.trace_id == request.context.trace_id for span in spans.sent())
    for word in ("zebra", "fsync", agent.token, agent.key.prefix, str(agent.account.pk), "testserver", "127.0.0.1"):
        assert word not in spans.told()


def test_a_query_string_and_what_an_address_names_stay_here(spans: Spans, agent: Agent, operator: Any) -> None:
    pk = insert("lesson", text="zebra")["id"]
    agent.client.get(f"/api/v1/lessons/{pk}/")
    agent.client.get("/api/v1/lessons/?search=zebra")
    Client().get(f"/nowhere/{pk}/zebra?key={agent.token}")
    assert {span.name for span in spans.sent() if span.parent is None} == {
        "GET api/v1/lessons/<uuid:pk>/", "GET api/v1/lessons/", "GET",
    }  # fmt: skip
    for word in ("zebra", str(pk), agent.token):
        assert word not in spans.told()


def test_an_error_says_its_kind_and_not_the_row_that_it_quotes(spans: Spans) -> None:
    tracer = spans.provider.get_tracer(tracing_of.OWN)
    with pytest.raises(IntegrityError), tracer.start_as_current_span("work"), transaction.atomic():
        insert("comment", text="")
    work = spans.named("work")
    assert work.status.status_code == StatusCode.ERROR
    assert work.status.description is None
    (event,) = work.events
    assert dict(event.attributes)["exception.type"].endswith("IntegrityError")
    assert "Failing row" not in spans.told()
    assert "comment_text_not_empty" not in spans.told()


def test_a_task_and_a_command_are_spans_named_without_their_arguments(spans: Spans, tmp_path: Any) -> None:
    gone = "0197a2b0-0000-7000-8000-000000000001"
    credit_interaction.apply(args=[gone])
    task = spans.named("run/memory.tasks.credit_interaction")
    assert spans.below(task)
    with pytest.raises(CommandError):
        call_command("export", "zebra")
    command = spans.named("manage.py export")
    assert spans.below(command)
    assert gone not in spans.told()
    assert "zebra" not in spans.told()


def test_probes_and_housekeeping_are_not_sent_and_strangers_are_named_by_their_library(spans: Spans) -> None:
    Client().get("/healthz")
    insert("account")
    assert spans.sent() == []
    with spans.provider.get_tracer("another.package").start_as_current_span("call zebra", attributes={"task": "zebra"}):
        pass
    assert [(span.name, dict(span.attributes)) for span in spans.sent()] == [("another.package", {})]


def test_nothing_is_traced_any_more_once_it_is_ended(spans: Spans, agent: Agent) -> None:
    before = Client()
    tracing_of.instrument(spans.provider)()
    before.get("/api/v1/lessons/")
    assert spans.sent() == []


class TestStarting:
    @pytest.mark.parametrize(
        ("variables", "on"),
        [
            ({}, False),
            ({"OTEL_SERVICE_NAME": "sonder"}, False),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
            (ENDPOINT, True),
            ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector.example.com/v1/traces"}, True),
            ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, False),
            ({**ENDPOINT, "OTEL_SDK_DISABLED": "false"}, True),
        ],
    )
    def test_follows_the_standards_variables_alone(self, variables: dict[str, str], on: bool) -> None:
        assert tracing.is_on(variables) is on

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What would have been traced."""
        found: list[Any] = []
        for name in ("OTEL_SDK_DISABLED", *tracing.COLLECTOR, *tracing.PROTOCOL):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(tracing_of, "provider", lambda: "a provider")
        monkeypatch.setattr(tracing_of, "instrument", found.append)
        return found

    def test_happens_where_a_collector_is_named(self, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        tracing.start()
        assert started == []
        monkeypatch.setenv(*next(iter(ENDPOINT.items())))
        tracing.start()
        assert started == ["a provider"]

    def test_without_the_extra_says_what_to_install(self, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(*next(iter(ENDPOINT.items())))
        monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation", None)
        monkeypatch.delitem(sys.modules, "opentelemetry.instrumentation.django", raising=False)
        with pytest.raises(SettingError, match=r"OTEL_EXPORTER_OTLP_ENDPOINT is set.*pip install 'sonder\[otel\]'"):
            tracing.start()
        assert started == []

    def test_by_another_protocol_is_refused(self, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(*next(iter(ENDPOINT.items())))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with pytest.raises(SettingError, match="'grpc'"):
            tracing.start()
        assert started == []

    def test_is_named_and_sends_as_the_variables_say(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tracing_of.trace, "set_tracer_provider", lambda provider: None)
        monkeypatch.setenv(*next(iter(ENDPOINT.items())))
        unnamed = tracing_of.provider()
        monkeypatch.setenv("OTEL_SERVICE_NAME", "memory-of-the-pumps")
        named = tracing_of.provider()
        names = [made.resource.attributes[SERVICE_NAME] for made in (unnamed, named)]
        for made in (unnamed, named):
            made.shutdown()
        assert names == ["sonder", "memory-of-the-pumps"]


def test_every_attribute_that_may_leave_is_listed_in_the_document() -> None:
    page = PAGE.read_text(encoding="utf-8").split("## Traces")[1]
    assert [name for name in tracing_of.ATTRIBUTES if f"`{name}`" not in page] == []
