"""Every route of the site as the URL resolver has it, so that none can be forgotten, and what an answer amounts to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse

IN, LOGIN = "in", "login"  # any other answer is named by its status


@dataclass(frozen=True, kw_only=True)
class Route:
    """One pattern of the resolver."""

    name: str  # with its namespace, as `reverse` takes it; its pattern where it has none
    pattern: str  # as it stands in the URL configuration
    view: Any  # the callable


def routes() -> list[Route]:
    """All routes, in the order in which they are tried."""
    return list(_below(get_resolver(), "", ""))


def _below(resolver: URLResolver, prefix: str, space: str) -> Iterator[Route]:
    for found in resolver.url_patterns:
        pattern = prefix + str(found.pattern)
        if isinstance(found, URLResolver):
            yield from _below(found, pattern, f"{space}{found.namespace}:" if found.namespace else space)
        elif isinstance(found, URLPattern):
            yield Route(name=f"{space}{found.name}" if found.name else pattern, pattern=pattern, view=found.callback)


ROUTES: Final = {route.name: route for route in routes()}


def named(route: Route, values: dict[str, Any]) -> str:
    """A route's address, with these values in it."""
    if route.name == route.pattern:  # it has no name
        return f"/{route.pattern}"
    return reverse(route.name, kwargs={name: values[name] for name in re.findall(r"<\w+:(\w+)>", route.pattern)})


def answer_of(response: Any) -> str:
    """The class of an answer. Whoever is let in may still be told that a form lacks something, or comes late."""
    if response.streaming:
        b"".join(response.streaming_content)
    if re.match(r"(/admin)?/login/", response.headers.get("Location", "")):
        return LOGIN
    if response.status_code < 400 or response.status_code in (400, 409, 422):
        return IN
    return str(response.status_code)


def let_in(client: Any, method: str, address: str, *form: Any, **extra: Any) -> str:
    """The answer to a request whose traces are taken back, so that the next finds the same world."""
    with transaction.atomic():
        told = answer_of(getattr(client, method.lower())(address, *form, **extra))
        transaction.set_rollback(True)
    return told
