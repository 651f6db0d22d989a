"""The demo store: what there is to try in it, and the way to take it back."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from memory.errors import NotFound
from memory.models import Account
from memory.models.vocabulary import Role
from memory.services import erasure
from memory.services.demo import story
from review.access import page, person_of
from review.queries import demo as reads


@require_GET
@page()
def demo(request: HttpRequest) -> HttpResponse:
    """What to try; where there is no demo, how to load one."""
    account, who = story.account(), person_of(request)
    context: dict[str, Any] = {
        "account": account,
        "may_remove": account is not None and who.may(Role.MAINTAINER, account.pk),
    }
    if account is not None:
        context |= {
            "quarantined": reads.quarantined(),
            "on_trial": reads.on_trial(),
            "contradiction": reads.contradiction(),
            "plan": reads.plan(),
            "preference": reads.preference(),
            "open": reads.questions(),
        }
    return render(request, "review/demo.html", context)


@require_POST
@page()
def remove(request: HttpRequest) -> HttpResponse:
    """Takes everything back that the demo made, for a maintainer of its account."""
    account, who = _there(), person_of(request)
    who.need(Role.MAINTAINER, account.pk)
    erased = erasure.erase("demo", account.pk, account_id=None, actor=who.actor)
    messages.success(request, f"The demo data are gone: {sum(erased.counts.values()):,} rows.")
    return HttpResponseRedirect(reverse("review:dashboard"))


def _there() -> Account:
    account = story.account()
    if account is None:
        raise NotFound("There are no demo data any more.")
    return account
