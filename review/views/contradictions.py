"""Contradictions: two lessons side by side, and a verdict that holds until one of them changes."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from memory.errors import NotFound
from memory.models import Contradiction, ReviewItem
from memory.models.vocabulary import ReviewKind, Role, Verdict
from memory.services import review_queue
from memory.services.adjudication import version_of
from memory.services.rejection import LIVE
from review.access import page, person_of, visible
from review.charts import Estimate, forest, forest_table, overlap_bar, overlap_table
from review.diff import word_diff
from review.holding import holding
from review.queries import contradictions as queries
from review.queries.lesson import comments
from review.words import VERDICTS

#: What can be decided, with the action of its key. The keys follow what stands on the left and right.
CHOICES = (
    (Verdict.KEEP_FIRST, "first"),
    (Verdict.KEEP_SECOND, "second"),
    (Verdict.KEEP_BOTH, "both"),
    (Verdict.MERGE_BOTH, "merge"),
    (Verdict.NOT_A_CONTRADICTION, "none"),
)


@require_GET
@page()
def queue(request: HttpRequest) -> HttpResponse:
    """The most urgent open pair that nobody else is at; after a decision one of the same set, if there is one."""
    person, item = person_of(request), _next(request)
    if item is not None:
        pair = Contradiction.objects.filter(pk=item.subject).first()
        if pair is not None:
            return render(request, "review/contradiction.html", _pair(request, pair, item))
    held = queries.queue(person.accounts()).filter(claimed_by__isnull=False).first()
    any_pair = Contradiction.objects.filter(visible(request)).order_by("-created_at")[:5]
    return render(request, "review/contradictions_empty.html", {"held": held, "decided": list(any_pair)})


def _next(request: HttpRequest) -> ReviewItem | None:
    """The question that the address names, or the most urgent one before what was skipped."""
    if named := request.GET.get("item"):
        return ReviewItem.objects.filter(visible(request), pk=named, kind=ReviewKind.CONTRADICTION.value).first()
    person, after = person_of(request), _uuid(request.GET.get("after"))
    free = queries.free(person.accounts(), person.user_id)
    fresh = free.exclude(pk__in=_skipped(request))
    same = queries.of_one_set(fresh, after).first() if after else None
    return same or fresh.first() or free.first()


def _uuid(value: str | None) -> UUID | None:
    """An id in an address; what is malformed names nothing."""
    try:
        return UUID(value) if value else None
    except ValueError:
        return None


def _skipped(request: HttpRequest) -> list[str]:
    found: list[str] = request.session.get("contradictions_skipped", [])
    return found


@require_POST
@page(Role.REVIEWER)
def skip(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Puts a pair behind the others for this login, and lets it go if the person had it."""
    review_queue.release(item_id, person_of(request))
    request.session["contradictions_skipped"] = [*_skipped(request), str(item_id)][-200:]
    messages.info(request, "Skipped. It comes again after the others.")
    return HttpResponseRedirect(reverse("review:contradictions"))


@require_GET
@page()
def detail(request: HttpRequest, contradiction_id: UUID) -> HttpResponse:
    """One pair, under an address of its own. Reading it changes nothing."""
    pair = Contradiction.objects.filter(visible(request), pk=contradiction_id).select_related("decided_by").first()
    if pair is None:
        raise NotFound("There is no such pair, or it is in an account that you are no member of.")
    return render(request, "review/contradiction.html", _pair(request, pair, None))


def _pair(request: HttpRequest, pair: Contradiction, offered: ReviewItem | None) -> dict[str, Any]:
    person, item, sides = person_of(request), queries.open_item(pair.pk), queries.sides(pair)
    here = reverse("review:contradiction", args=[pair.pk])
    may = person.may(Role.REVIEWER, pair.account_id)
    hold = holding(item, person, may=may, here=f"{reverse('review:contradictions')}?item={item.pk}" if item else here)
    decision = queries.decision(pair.pk) if pair.verdict else None
    context: dict[str, Any] = {
        "pair": pair,
        "item": item,
        "offered": offered is not None,
        "sides": sides,
        "here": here,
        "hold": hold,
        "may_decide": may and not hold["holder"],
        "why_not": hold["why_not"]
        if may
        else "Deciding needs the role reviewer. A maintainer of the account can give it.",
        "decision": decision,
        "successors": queries.successors(decision),
        "verdict_words": VERDICTS[Verdict(pair.verdict)] if pair.verdict else None,
        "comments": comments(pair.pk),
    }
    if len(sides) < 2:
        return context
    a, b = sides
    earlier = queries.earlier(a, b)
    return {
        **context,
        "spans": word_diff(a.lesson.text, b.lesson.text),
        "charts": _charts(a, b),
        "together": queries.together(pair, person.accounts()),
        "group": None if pair.verdict else queries.group(pair),
        "earlier": earlier,
        "reworded": word_diff(earlier.before.text, (a if earlier.side == "A" else b).lesson.text) if earlier else [],
        "choices": [] if pair.verdict or not _live(sides) else _choices(pair, item, offered),
    }


def _live(sides: list[queries.Side]) -> bool:
    """Whether both may still be handed out one day: of a pair with one out of service nothing is to be decided."""
    return all(side.lesson.state in LIVE for side in sides)


def _choices(pair: Contradiction, item: ReviewItem | None, offered: ReviewItem | None) -> list[dict[str, Any]]:
    onward = f"{reverse('review:contradictions')}?after={pair.pk}"
    asked = {
        "subject": pair.pk,
        "item": item.pk if item else "",
        "expected_version": item.version if item else version_of(pair.pk),
        "next": onward if offered else reverse("review:contradiction", args=[pair.pk]),
    }
    return [_choice(verdict, action, asked) for verdict, action in CHOICES]


def _choice(verdict: Verdict, action: str, asked: dict[str, Any]) -> dict[str, Any]:
    words = VERDICTS[verdict]
    return {
        "verdict": verdict.value,
        "label": words.label,
        "consequence": words.consequence,
        "action": action,
        "ask": f"{reverse('review:ask', args=[verdict.value])}?{urlencode(asked)}",
    }


def _charts(a: queries.Side, b: queries.Side) -> list[dict[str, Any]]:
    """Each chart with its table."""
    met, title = queries.overlap(a, b), "How often they were handed out"
    rates = [Estimate(label=side.name, losses=side.losses, n=side.n) for side in (a, b)]
    lost = "How often each was lost"
    return [
        {"svg": overlap_bar("overlap", met, title=title), "table": overlap_table(met, title=title)},
        {"svg": forest("rates", rates, title=lost), "table": forest_table(rates, title=lost)},
    ]
