"""Who looks at a page: logged in, with a role, and what of the store they may see."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from memory.errors import Conflict, Forbidden, Invalid, NotFound, SonderError
from memory.models.vocabulary import Role
from memory.services.authority import Person, person

View = Callable[..., HttpResponse]
STATUS = {NotFound: 404, Forbidden: 403, Conflict: 409, Invalid: 422}


def person_of(request: HttpRequest) -> Person:
    """The logged-in person with their roles, read once a request."""
    found: Person | None = getattr(request, "sonder_person", None)
    if found is None:
        user = request.user
        assert user.is_authenticated, "every review page asks for a login first"
        found = person(user.pk, user.get_short_name() or user.get_username(), superuser=user.is_superuser)
        request.sonder_person = found  # type: ignore[attr-defined]  # a request carries what was read for it
    return found


def page(role: Role = Role.VIEWER) -> Callable[[View], View]:
    """A page for people who have this role somewhere; what it refuses is told as a page, and nothing is half done."""

    def decorate(view: View) -> View:
        @wraps(view)
        def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(_form_of(request))
            try:
                person_of(request).need(role, None)
                answer = view(request, *args, **kwargs)
            except SonderError as refusal:
                answer = refused(request, refusal)
            except ValidationError:  # a malformed id in an address names nothing
                answer = refused(request, NotFound("There is nothing under this address."))
            if request.method == "POST" and answer.status_code >= 400:
                answer["HX-Push-Url"] = "false"  # what was refused is no page to come back to
            return answer

        return shown

    return decorate


def _form_of(request: HttpRequest) -> str:
    """Where to go on after a login: the page itself, or the one that a form was on."""
    sent_from = request.headers.get("Referer", "")
    if request.method == "GET" or not url_has_allowed_host_and_scheme(sent_from, {request.get_host()}):
        return request.get_full_path()
    return urlsplit(sent_from)._replace(scheme="", netloc="").geturl()


def refused(request: HttpRequest, refusal: SonderError) -> HttpResponse:
    """The page that says what was refused, that nothing was saved, and what to do."""
    status = next((code for kind, code in STATUS.items() if isinstance(refusal, kind)), 503)
    return render(request, "review/refused.html", {"refusal": refusal, "code": status}, status=status)


def visible(request: HttpRequest, column: str = "account_id") -> Q:
    """Rows that the person may see: those of their accounts, and global ones."""
    accounts = person_of(request).accounts()
    return Q() if accounts is None else Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__in": accounts})


def own(request: HttpRequest, column: str = "account_id") -> Q:
    """Rows of the person's accounts only: what is an account's alone, such as its work, facts and preferences."""
    accounts = person_of(request).accounts()
    return Q() if accounts is None else Q(**{f"{column}__in": accounts})
