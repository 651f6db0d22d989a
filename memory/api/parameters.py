"""Query parameters: a misspelt filter must not show everything, so that each is known, single and not empty."""

from typing import TYPE_CHECKING

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

if TYPE_CHECKING:  # DRF's settings load its views, and these load this module
    from rest_framework.views import APIView

MAX_NAMED = 20  # wrong names repeated in one answer


def known_parameters(view: "APIView", method: str) -> list[str]:
    """The names that an operation understands, in alphabetical order."""
    names: set[str] = set(getattr(view, "parameters", {}).get(method, ()))
    if method not in {"GET", "HEAD"}:
        return sorted(names)
    if getattr(view, "pagination_class", None) is not None:
        names |= {"cursor", "page_size"}
    if (filters := getattr(view, "filterset_class", None)) is not None:
        names |= set(filters.base_filters)
    return sorted(names)


def check_parameters(request: Request, view: "APIView") -> None:
    """Raises ValidationError that names each parameter which is unknown, given twice or empty."""
    known = known_parameters(view, request.method or "GET")
    knows = f"it knows {', '.join(known)}" if known else "it knows none"
    wrong: dict[str, list[str]] = {}
    for name, values in request.query_params.lists():
        if name not in known:
            wrong[name] = [f"is not a parameter of this request; {knows}."]
        elif len(values) > 1:
            wrong[name] = ["is given more than once."]
        elif not values[0]:
            wrong[name] = ["is empty. Leave it out, or give it a value."]
    if wrong:
        raise ValidationError(dict(list(wrong.items())[:MAX_NAMED]))
