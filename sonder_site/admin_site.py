"""The operators' site: an address that asks for what cannot be looked up is a bad request, and no fault."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import structlog
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest, ValidationError
from django.db import DataError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from sonder_site.login import in_turn

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
NUL = "\x00"

log = structlog.get_logger(__name__)


class SonderAdminSite(AdminSite):
    """Django's, with one answer to values of any filter, search or action that no column can be compared with."""

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """A view of the site. What it refuses leaves nothing behind."""
        return super().admin_view(refusing(view), cacheable)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The login page, in turn."""
        return cast(HttpResponse, in_turn(super().login)(request, extra_context))


def refusing(view: View) -> View:
    """The view, with BadRequest (400) for values that Django looks up unchecked.

    Those are NUL, which PostgreSQL's texts cannot hold, numbers and dates beyond their type's range, and ids of another
    type. They come in an address or as the rows of an action; forms are checked by Django.
    """

    @wraps(view)
    def checked(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        if any(NUL in value for value in _values(request, named)):
            raise BadRequest("No value may hold the character NUL.")
        try:
            with transaction.atomic():
                return view(request, *arguments, **named)
        except (DataError, OverflowError, ValidationError, ValueError) as error:
            if not request.GET and ACTION_CHECKBOX_NAME not in request.POST:
                raise
            log.warning("admin_bad_request", path=request.path, exc_info=error)
            raise BadRequest("A value in the address or the form cannot be looked up.") from error

    return cast(View, checked)


def _values(request: HttpRequest, named: dict[str, Any]) -> list[str]:
    """Everything that came as text: names and values of parameters and fields, and parts of the path."""
    lists = [(name, *values) for source in (request.GET, request.POST) for name, values in source.lists()]
    return [text for texts in lists for text in texts] + [str(value) for value in named.values()]
