"""Traces by OpenTelemetry: on where OpenTelemetry's own variables name a collector, and nowhere else."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from memory.conf import SettingError

#: Of the standard's variables, those that say where spans go.
COLLECTOR: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOL: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP: Final = "http/protobuf"  # what the standard takes for granted
#: What the extra installs; `opentelemetry` itself is there without it.
NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.instrumentation.django")


def is_on(variables: Mapping[str, str]) -> bool:
    """Whether somebody wants traces."""
    disabled = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(variables.get(name) for name in COLLECTOR)


def start() -> None:
    """Begins to trace this process, once. Raises SettingError where that was asked for and cannot be."""
    if not is_on(os.environ):
        return
    if not all(_is_there(name) for name in NEEDED):
        named = COLLECTOR[0] if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") else COLLECTOR[1]
        raise SettingError(
            f"{named} is set, and the packages that make traces are not installed. Install the extra 'otel' "
            "(pip install 'sonder[otel]'), or unset the variable."
        )
    asked = next(filter(None, (os.environ.get(name) for name in PROTOCOL)), HTTP)
    if asked != HTTP:
        raise SettingError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {asked!r}; spans are sent as {HTTP}.")
    from sonder_site import spans

    spans.instrument(spans.provider())


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
