"""JSON to the values of `answers`, by their types."""

import types
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")
#: Types that JSON does not have, or does not tell apart: what they are made from, and how.
_FROM_JSON: dict[Any, tuple[tuple[type, ...], Any]] = {
    UUID: ((str,), UUID),
    datetime: ((str,), datetime.fromisoformat),
    float: ((int, float), float),
}


def read(kind: type[T], value: Any) -> T:
    """The value as this type, without fields that it does not know. Raises TypeError or ValueError where it is none."""
    found: T = _read(kind, value)
    return found


def _read(kind: Any, value: Any) -> Any:
    if get_origin(kind) is types.UnionType:
        (inner,) = (arm for arm in get_args(kind) if arm is not types.NoneType)
        return None if value is None else _read(inner, value)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise TypeError(f"a list was expected, not {type(value).__name__}")
        return tuple(_read(get_args(kind)[0], item) for item in value)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        given = {name: _read(hint, value[name]) for name, hint in _hints(kind).items() if name in value}
        return kind(**given)
    if kind in _FROM_JSON:
        plain, convert = _FROM_JSON[kind]
        if type(value) in plain:
            return convert(value)
    elif type(value) is kind:
        return value
    raise TypeError(f"{kind.__name__} was expected, not {type(value).__name__}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
