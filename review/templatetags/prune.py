"""Looking things up by a lesson's id, which templates cannot do by themselves."""

from collections.abc import Mapping
from typing import Any

from django import template

register = template.Library()


@register.filter
def of(table: Mapping[str, Any], lesson: Any) -> Any:
    """What a table has of a lesson; None if nothing."""
    return table.get(str(lesson))
