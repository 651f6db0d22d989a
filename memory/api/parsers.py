"""JSON in: bounded in size and depth, and an object."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

MAX_DEPTH = 20


class TooLarge(APIException):
    status_code = 413
    default_code = "too_large"

    def __init__(self) -> None:
        super().__init__(f"The body is over {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes. Send less text.")


def depth(value: object) -> int:
    """Nesting of a JSON value, without recursion; 0 for a scalar."""
    level, deepest = [value], 0
    while level:
        below: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        containers = any(isinstance(item, Mapping | list) for item in level)
        deepest += containers
        level = below if containers and deepest <= MAX_DEPTH else []
    return deepest


class StrictJSONParser(JSONParser):
    """DRF's strict JSON (no NaN), refused with a sentence when it is huge, too deep or not an object."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        request = (parser_context or {})["request"]
        if int(request.META.get("CONTENT_LENGTH") or 0) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise TooLarge
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from None
        if not isinstance(data, dict):
            raise ParseError("The body must be a JSON object.")
        if depth(data) > MAX_DEPTH:
            raise ParseError(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        return data
