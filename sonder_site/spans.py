"""What is traced, and what of it may leave: how long things took, and nothing of what they were about.

Requests, background tasks, commands and their statements become spans. An exporter in front of the real one lets names
through that are known to hold no content, and nothing else: no query string, no address, no key, no message of an error
(PostgreSQL's quote whole rows), and of a statement its text with placeholders, never its values.

Importing this needs the extra `otel`.
"""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from django.core.management.base import BaseCommand
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status

OWN: Final = "sonder"  # the scope of spans that are made here
STATEMENTS: Final = "opentelemetry.instrumentation.psycopg"
#: Whose names of spans are known to hold no content.
SCOPES: Final = (
    OWN, STATEMENTS, "opentelemetry.instrumentation.django", "opentelemetry.instrumentation.celery",
)  # fmt: skip
#: What spans may say of themselves, by the names of the semantic conventions, older and newer.
ATTRIBUTES: Final = frozenset({
    "http.method", "http.request.method", "http.route", "http.status_code", "http.response.status_code", "http.scheme",
    "url.scheme", "http.flavor", "network.protocol.version", "error.type",
    "db.system", "db.system.name", "db.name", "db.namespace", "db.statement", "db.query.text", "db.operation.name",
    "celery.action", "celery.state", "celery.task_name", "celery.retries", "messaging.message.id",
    "messaging.destination", "messaging.destination.name",
    "exception.type", "exception.escaped",
})  # fmt: skip
EXCLUDED: Final = "OTEL_PYTHON_DJANGO_EXCLUDED_URLS"
PROBES: Final = "healthz,readyz,metrics"  # asked every few seconds, about nothing
LASTING: Final = frozenset({"up", "mcp", "runserver"})  # commands that end with their process


class ContentFree(SpanExporter):
    """Passes spans on without their content."""

    def __init__(self, within: SpanExporter) -> None:
        self._within = within

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """A statement that belongs to no request, task or command is housekeeping, and stays here."""
        return self._within.export([_told(span) for span in spans if span.parent or _scope(span) != STATEMENTS])

    def shutdown(self) -> None:
        self._within.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._within.force_flush(timeout_millis)


def _told(span: ReadableSpan) -> ReadableSpan:
    scope = _scope(span)
    return ReadableSpan(
        name=span.name if scope in SCOPES else scope,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_allowed(span.attributes),
        events=[Event(event.name, _allowed(event.attributes), event.timestamp) for event in span.events],
        links=[Link(link.context) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _scope(span: ReadableSpan) -> str:
    return span.instrumentation_scope.name if span.instrumentation_scope else ""


def _allowed(attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in (attributes or {}).items() if name in ATTRIBUTES}


def provider() -> TracerProvider:
    """Sends to the collector that OpenTelemetry's variables name, and is sampled and named as they say."""
    named = OTELResourceDetector().detect().attributes.get(SERVICE_NAME)
    made = TracerProvider(resource=Resource.create({} if named else {SERVICE_NAME: "sonder"}))
    made.add_span_processor(BatchSpanProcessor(ContentFree(OTLPSpanExporter())))
    trace.set_tracer_provider(made)
    return made


def instrument(provider: TracerProvider) -> Callable[[], None]:
    """Traces what this process does from now on; returns what ends that."""
    excluded = os.environ.get(EXCLUDED, PROBES)
    instrumentors = (PsycopgInstrumentor(), CeleryInstrumentor(), DjangoInstrumentor())
    for each in instrumentors:
        each.instrument(tracer_provider=provider, excluded_urls=excluded, capture_parameters=False)
    execute = BaseCommand.execute
    BaseCommand.execute = _traced(execute, provider.get_tracer(OWN))  # type: ignore[method-assign]

    def end() -> None:
        BaseCommand.execute = execute  # type: ignore[method-assign]
        for each in instrumentors:
            each.uninstrument()

    return end


def _traced(execute: Callable[..., Any], tracer: trace.Tracer) -> Callable[..., Any]:
    """Commands as spans, named without their arguments."""

    @wraps(execute)
    def traced(command: BaseCommand, *arguments: Any, **options: Any) -> Any:
        name = type(command).__module__.rpartition(".")[2]
        if name in LASTING:
            return execute(command, *arguments, **options)
        with tracer.start_as_current_span(f"manage.py {name}"):
            return execute(command, *arguments, **options)

    return traced
