"""People and their roles, account by account."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from memory.errors import Invalid, NotFound
from memory.models import Account
from memory.models.vocabulary import Role
from memory.services import people as service
from review.access import page, person_of
from review.queries import people as reads


@require_GET
@page()
def people(request: HttpRequest) -> HttpResponse:
    """Everybody in the person's accounts; who is maintainer there can change roles."""
    return _page(request, request.GET.get("from", "").replace("\x00", "").strip())


def _page(request: HttpRequest, since: str, status: int = 200, **more: Any) -> HttpResponse:
    found = reads.teams(person_of(request), since)
    context = {"found": found, "since": since, "roles": [(role.value, role.label) for role in Role], **more}
    return render(request, "review/people.html", context, status=status)


@require_POST
@page()
def grant(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """Gives a person a role; a refusal keeps what was typed."""
    account = _account(request, account_id)
    sent = request.POST
    username = sent.get("username", "").strip()
    try:
        made = service.grant(person_of(request), account_id, username, sent.get("role", ""))
    except Invalid as refusal:
        typed = {"username": username, "role": sent.get("role", "")}
        since = reads.page_of(person_of(request), account)
        return _page(request, since, 422, refused=account_id, typed=typed, errors=refusal.errors)
    messages.success(request, f"{username} is {made.role} now.")
    return HttpResponseRedirect(_address(request, account))


@require_POST
@page()
def change(request: HttpRequest, account_id: UUID, user_id: int) -> HttpResponse:
    """Changes or takes away a role; what a person did stays."""
    account = _account(request, account_id)
    sent = request.POST
    role = None if sent.get("remove") else service.role_or_none(sent.get("role", ""))
    made = service.change(
        service.Change(
            by=person_of(request),
            account_id=account_id,
            user_id=user_id,
            role=role,
            expected=sent.get("expected", ""),
        )
    )
    messages.success(request, f"{sent.get('name', 'The person')} is {made.role if made else 'no member'} now.")
    gone = _left(request, made, user_id)
    return HttpResponseRedirect(reverse("review:dashboard") if gone else _address(request, account))


def _left(request: HttpRequest, made: Any, user_id: int) -> bool:
    """Whether the person has just taken away their own role."""
    return made is None and user_id == person_of(request).user_id


def _account(request: HttpRequest, account_id: UUID) -> Account:
    account = reads.account_named(person_of(request), account_id)
    if account is None:
        raise NotFound("There is no such account among yours.")
    return account


def _address(request: HttpRequest, account: Account) -> str:
    """The page that has the account."""
    since = reads.page_of(person_of(request), account)
    return reverse("review:people") + (f"?{urlencode({'from': since})}" if since else "")
