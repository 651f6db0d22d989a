"""The first page: whose turn it is, what waits, what others did, and whether anything is on fire."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from memory.errors import Invalid, SonderError
from memory.models.vocabulary import Exposure, RefinementOperation
from memory.services.health import HealthReport, report
from review.access import own, page, person_of, visible
from review.accounts import Choice, choose
from review.events import EVENTS
from review.keys import KEYS
from review.models import Look
from review.places import KINDS, item_url, queue_url
from review.queries import dashboard as reads
from review.queries.actors import names
from review.queries.agreement import agreement
from review.queries.alerts import Warnings, warnings

log = structlog.get_logger(__name__)

NEVER_LOOKED: Final = timedelta(days=7)  # who never said what they have seen hears of a week
DISMISSED: Final = "dismissed_news"  # in the session
DETECTORS: Final = ("credit_sweep", "contradictions")  # jobs that judge lessons
REMEMBERED: Final = 200  # dismissed notices; older ones have left the page by then


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One part of the page: what it shows, or that it could not be read."""

    data: Any = None
    failed: bool = False


def tile(read: Callable[[], Any]) -> Tile:
    """A failure stays in its tile, and the log has the reason."""
    try:
        return Tile(data=read())
    except (DatabaseError, SonderError):
        log.exception("tile_failed")
        return Tile(failed=True)


@require_GET
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The dashboard; who has no role anywhere is told who can give one."""
    who = person_of(request)
    if not who.everywhere and not who.roles:
        return _nobody(request)
    return _dashboard(request)


def _nobody(request: HttpRequest) -> HttpResponse:
    operators = get_user_model().objects.filter(is_superuser=True, is_active=True).order_by("username")
    context = {"operators": list(operators.values_list("username", flat=True)[:3])}
    return render(request, "review/nobody.html", context, status=403)


@page()
def _dashboard(request: HttpRequest) -> HttpResponse:
    now, choice = timezone.now(), choose(request)
    look = Look.objects.filter(user=person_of(request).user_id).first()
    health = tile(lambda: _health(choice, now))
    made, known = health.data or (None, None)
    context = {
        "choice": choice,
        "look": look or Look(),
        "turn": tile(lambda: _turn(request, now)),
        "queues": tile(lambda: _queues(request, now)),
        "news": tile(lambda: _news(request, look, now)),
        "health": Tile(data=made, failed=health.failed),
        "warnings": known,
        "agreement": tile(lambda: _agreement(choice, now)),
        "origin": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "review/dashboard.html", {**context, **_figures(made)})


def _health(choice: Choice, now: datetime) -> tuple[HealthReport, Warnings]:
    made = report(choice.account_id)
    return made, warnings(choice, made.reasons, now)


def _figures(found: HealthReport | None) -> dict[str, Any]:
    """What the strip says of the report; nothing if that could not be made."""
    if found is None:
        return {}
    quarantine = found.quarantine
    shares = {row.exposure: row.n for row in found.exposures}
    fitted, kept_out = sum(shares.values()), shares[Exposure.WITHHELD_QUARANTINE.value]
    return {
        "detector": max((job.done_at for job in found.jobs if job.job in DETECTORS and job.done_at), default=None),
        "decided": quarantine.upheld + quarantine.overturned,
        "kept_out": f"{kept_out:,} of {fitted:,}" if fitted else "nothing handed out",
        "first_use": not found.vectors.lessons and not found.work.interactions,
    }


def _queues(request: HttpRequest, now: datetime) -> list[dict[str, Any]]:
    labels = {key.action: key.label for key in KEYS if key.scope == "go"}
    return [
        {"size": size, "label": labels[size.name], "url": queue_url(size.name)}
        for size in reads.queue_sizes(visible(request), now)
    ]


def _turn(request: HttpRequest, now: datetime) -> dict[str, Any]:
    who = person_of(request)
    found = reads.turn(who, now)
    if found is not None:
        url = item_url(found.kind, found.item, found.subject)
        return {"item": found, "url": url, "kind": KINDS[found.kind]}
    if not reads.may_decide(who):
        return {"reader": True}
    return {"nothing": reads.nothing(who, now)}


def _news(request: HttpRequest, look: Look | None, now: datetime) -> dict[str, Any]:
    since = (look.last_visit if look else None) or now - NEVER_LOOKED
    dismissed = request.session.get(DISMISSED, [])
    found = reads.news(person_of(request), since, visible(request), own(request, "preference__account_id"), dismissed)
    shown = found[: reads.NEWS_SHOWN]
    called = names(each.actor for each in shown)
    return {
        "rows": [_notice(each, called[each.actor]) for each in shown],
        "since": since,
        "looked": bool(look and look.last_visit),
        "more": len(found) - len(shown),
        "newest": found[0].at if found else None,
    }


def _notice(each: reads.News, who: str) -> dict[str, Any]:
    if each.what == RefinementOperation.ROLLBACK.value:
        words, chip, url = "Preference rolled back", "", reverse("review:preference", args=[each.subject])
    else:
        words, chip = EVENTS[each.what]
        url = reverse("review:lesson", args=[each.subject])
    return {"news": each, "who": who, "words": words, "chip": chip, "url": url}


def _agreement(choice: Choice, now: datetime) -> Any:
    accounts = None if choice.account is None else [choice.account.pk]
    return agreement(accounts, now - timedelta(weeks=4))


@require_POST
@page()
def seen(request: HttpRequest) -> HttpResponse:
    """Everything up to a moment is seen: the next look begins there. It never moves back."""
    try:
        until = parse_datetime(request.POST.get("until", ""))
    except ValueError:
        until = None
    if until is None or timezone.is_naive(until):
        raise Invalid.field("until", "reload the page: this is no moment.")
    look, _ = Look.objects.get_or_create(user_id=person_of(request).user_id)
    if look.last_visit is None or look.last_visit < until:
        look.last_visit = min(until, timezone.now())
        look.save(update_fields=["last_visit"])
    return HttpResponseRedirect(reverse("review:dashboard"))


@require_POST
@page()
def dismiss(request: HttpRequest) -> HttpResponse:
    """One notice is read, and stays away until the person logs out."""
    try:
        notice = str(UUID(request.POST.get("notice", "")))
    except ValueError:
        raise Invalid.field("notice", "reload the page: this names nothing.") from None
    kept = [each for each in request.session.get(DISMISSED, []) if each != notice]
    request.session[DISMISSED] = [*kept, notice][-REMEMBERED:]
    return HttpResponseRedirect(reverse("review:dashboard"))
