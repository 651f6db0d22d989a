"""Judging: the next piece of work that is worth a verdict, what a verdict means, and what others said afterwards."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory import conf
from memory.errors import Invalid, NotFound
from memory.models import Interaction, ReviewItem
from memory.models.vocabulary import Role
from memory.services import judging
from memory.services.adjudication import version_of
from memory.services.authority import Person
from review.access import own, page, person_of
from review.holding import holding
from review.queries import interactions as lists
from review.queries import outcomes as queries
from review.queries.lesson import comments
from review.views.deciding import here_or

FOLD_TASK, FOLD_ANSWER = 1200, 3000  # characters that are shown at once; the rest unfolds


@require_GET
@page()
def queue(request: HttpRequest) -> HttpResponse:
    """The next piece of work worth judging that nobody else is at; after a verdict also what others said of that."""
    person = person_of(request)
    item = _next(request, person)
    context: dict[str, Any] = {"after": _after(request, person), "waiting": queries.queue(person).count()}
    if item is None:
        return render(request, "review/outcomes_empty.html", {**context, **_empty(request, person)})
    return render(request, "review/interaction.html", {**context, **_work(request, item.subject, item)})


def _next(request: HttpRequest, person: Person) -> ReviewItem | None:
    """The question that the address names, or the most valuable one."""
    if named := request.GET.get("item"):
        return ReviewItem.objects.filter(own(request), pk=named, kind__in=judging.KINDS).first()
    return queries.free(person).first()


def _empty(request: HttpRequest, person: Person) -> dict[str, Any]:
    held = queries.queue(person).select_related("claimed_by").order_by("claim_expires_at").first()
    return {
        "held": held if held and held.claimed_by else None,
        "any_work": Interaction.objects.filter(own(request)).exists(),
        "may_judge": person.accounts(Role.JUDGE) != [],
        "today": queries.judged_today(person),
    }


@require_GET
@page()
def detail(request: HttpRequest, interaction_id: UUID) -> HttpResponse:
    """One piece of work, under an address of its own. Reading it changes nothing."""
    return render(request, "review/interaction.html", _work(request, interaction_id, None))


def _find(request: HttpRequest, interaction_id: UUID | str) -> Interaction:
    found = Interaction.objects.filter(own(request), pk=interaction_id)
    interaction = found.select_related("account", "project", "api_key").first()
    if interaction is None:
        raise NotFound("There is no such piece of work, or it is in an account that you are no member of.")
    return interaction


def _work(request: HttpRequest, interaction_id: UUID, offered: ReviewItem | None) -> dict[str, Any]:
    """What the page of a piece of work holds. `offered` is the question through which it came up, if one did."""
    person, interaction = person_of(request), _find(request, interaction_id)
    item = queries.open_item(interaction_id)
    here = reverse("review:interaction", args=[interaction_id])
    onward = f"{reverse('review:outcomes')}?judged={interaction_id}" if offered else here
    shown = queries.show(interaction)
    may = person.may(Role.JUDGE, interaction.account_id)
    hold = holding(item, person, may=may, here=f"{reverse('review:outcomes')}?item={item.pk}" if item else here)
    said, retained_days = comments(interaction_id), conf.current().retain_texts_days
    return {
        "shown": shown,
        "interaction": interaction,
        "task": _folded(interaction.task, FOLD_TASK),
        "answer": _folded(interaction.response or "", FOLD_ANSWER),
        "item": item,
        "offered": offered is not None,
        "asked": {
            "subject": interaction_id,
            "item": item.pk if item else "",
            "expected_version": item.version if item else version_of(interaction_id),
            "next": onward,
        },
        "here": f"{reverse('review:outcomes')}?item={offered.pk}" if offered else here,
        "hold": hold,
        "may_judge": may and not hold["holder"],
        "may_excuse": person.may(Role.REVIEWER, interaction.account_id),
        "why_not": hold["why_not"] if may else "Judging needs the role judge. A maintainer of the account can give it.",
        "comments": said,
        "flagged": any(comment.text.startswith(judging.PRIVATE) for comment in said),
        "retained_days": retained_days,
        "retained": bool(retained_days) and timezone.now() - interaction.created_at >= timedelta(days=retained_days),
    }


def _folded(text: str, limit: int) -> tuple[str, str]:
    """The beginning, and the rest where there is so much that it would hide what comes after."""
    return (text, "") if len(text) <= limit + 200 else (text[:limit], text[limit:])


def _after(request: HttpRequest, person: Person) -> dict[str, Any] | None:
    """What the automatic verdict and the other judges were on the work that was just judged."""
    named = request.GET.get("judged")
    if not named:
        return None
    shown = queries.show(_find(request, named))
    everything, blind = queries.running(person)
    mine = next((vote for vote in shown.votes if vote.person == person.user_id), None)
    return {"shown": shown, "mine": mine, "running": everything, "blind": blind}


@require_POST
@page(Role.JUDGE)
def skip(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """They cannot tell: the next one is offered."""
    judging.skip(item_id, person_of(request))
    messages.info(request, "Skipped. It is not offered to you again.")
    return HttpResponseRedirect(here_or(request, request.POST.get("next"), reverse("review:outcomes")))


@require_http_methods(["GET", "POST"])
@page(Role.JUDGE)
def private(request: HttpRequest, interaction_id: UUID) -> HttpResponse:
    """Notes that the text holds private data, and says how it is erased."""
    interaction, person = _find(request, interaction_id), person_of(request)
    person.need(Role.JUDGE, interaction.account_id)
    here = reverse("review:interaction", args=[interaction_id])
    note, errors = request.POST.get("note", ""), {}
    if request.method == "POST":
        try:
            judging.flag_private(interaction_id, person, note)
            messages.success(request, "Flagged as private.")
            return HttpResponseRedirect(here_or(request, request.POST.get("next"), here))
        except Invalid as refusal:
            errors = refusal.errors
    context = {
        "interaction": interaction,
        "note": note,
        "errors": errors,
        "here": here,
        "next": request.GET.get("next"),
    }
    return render(request, "review/interaction_private.html", context, status=422 if errors else 200)


@require_GET
@page()
def index(request: HttpRequest) -> HttpResponse:
    """Work, newest first, by project, model, tier, lesson and what judges said."""
    asked, accounts = request.GET, person_of(request).accounts()
    wanted = lists.Wanted(
        project=_id(asked.get("project")),
        lesson=_id(asked.get("lesson")),
        model=asked.get("model", "").replace("\x00", "").strip()[:200],
        tier=asked.get("tier", "").replace("\x00", "").strip()[:40],
        state=asked.get("state", "") if asked.get("state") in lists.STATES else "",
        before=_id(asked.get("before")),
    )
    rows = lists.listed(wanted, accounts)
    more = rows[lists.PAGE - 1].id if len(rows) > lists.PAGE else None
    address = asked.copy()
    address.pop("before", None)
    context = {
        "rows": rows[: lists.PAGE],
        "wanted": wanted,
        "more": more,
        "address": address.urlencode(),
        "window": lists.WINDOW,
        "states": [(name, words) for name, (words, _) in lists.STATES.items()],
        "projects": lists.projects(accounts),
        "lesson": lists.lesson(wanted.lesson, accounts),
    }
    return render(request, "review/interactions.html", context)


def _id(value: str | None) -> UUID | None:
    """An id of the address; what is malformed filters nothing."""
    try:
        return UUID(value) if value else None
    except ValueError:
        return None
