"""JSON in: UTF-8, bounded in size and depth, no name twice, and an object."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.parsers import BaseParser

MAX_DEPTH = 20
TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."


class TooLarge(APIException):
    status_code = 413
    default_code = "too_large"

    def __init__(self) -> None:
        super().__init__(f"The body is over {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes. Send less text.")


def depth(value: object) -> int:
    """Nesting of a JSON value, without recursion and no deeper than one beyond MAX_DEPTH; 0 for a scalar."""
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


def read_json(raw: bytes) -> Any:
    """Strict JSON (RFC 8259): UTF-8 whatever a charset parameter says, no NaN, no name twice in an object.

    Raises ParseError, or ValidationError that names what was given twice.
    """
    try:
        return json.loads(raw.decode(), object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except RecursionError:
        raise ParseError(TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8: byte {error.start} is wrong.") from None
    except json.JSONDecodeError as error:
        raise ParseError(f"The body is not JSON: {error}.") from None
    except ValueError:
        raise ParseError("A number in the body has too many digits.") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Parsers disagree on which of two equal names counts, so that neither does."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValidationError({twice: ["is given more than once."]})
    return found


def _refuse_constant(word: str) -> None:
    raise ParseError(f"{word} is not JSON. Use a number, or null.")


class StrictJSONParser(BaseParser):
    """Refuses with a sentence what is huge, too deep, not strict JSON or not an object.

    No heir of DRF's JSONParser, whose heirs are handed a body that Django has refused already, without a sentence.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        raw = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise TooLarge
        data = read_json(raw)
        if not isinstance(data, dict):
            raise ParseError("The body must be a JSON object.")
        if depth(data) > MAX_DEPTH:
            raise ParseError(TOO_DEEP)
        return data
