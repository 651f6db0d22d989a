"""One decision about many lessons: what it would do, then what it did, each lesson by itself, and the way back."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from memory.errors import Invalid
from memory.models.vocabulary import Verdict
from memory.services import bulk_decisions
from memory.services.bulk_decisions import Act, Entry, Order, Wanted
from review.access import page, person_of, visible
from review.queries import quarantine
from review.queries.inbox import decided_texts
from review.reasons import with_keys
from review.views.deciding import here_or
from review.views.items import offered, until_from
from review.words import VERDICTS

#: What each act is called where the marked lessons may stand in different states.
LABELS: Final[dict[Act, str]] = {
    Act.SERVE: "Let serve",
    Act.RELEASE: "Release",
    Act.KEEP_OUT: "Keep out",
    Act.REJECT: "Reject",
    Act.SNOOZE: "Snooze",
}
SNOOZED: Final = "Snooze"


def _wanted(request: HttpRequest) -> list[Wanted]:
    """The marked rows, each once: `lesson:item:version`, or `burst:from:to` for all of one burst. Raises Invalid."""
    found: dict[UUID, Wanted] = {}
    for value in request.POST.getlist("marked")[: bulk_decisions.LIMIT + 1]:
        kind, _, rest = value.partition(":")
        several = quarantine.burst(request, rest) if kind == "burst" else [_one(value)]
        found |= {each.subject: each for each in several}
    return list(found.values())


def _one(value: str) -> Wanted:
    try:
        subject, item, version = value.split(":")
        return Wanted(subject=UUID(subject), item=UUID(item) if item else None, version=int(version))
    except ValueError:
        raise Invalid.field("marked", "reload the page and mark the rows again.") from None


def _act(request: HttpRequest) -> Act:
    try:
        return Act(request.POST.get("act", ""))
    except ValueError:
        raise Invalid.field("act", f"choose one of {', '.join(Act)}.") from None


@require_http_methods(["GET", "POST"])
@page()
def bulk(request: HttpRequest) -> HttpResponse:
    """What the act would do to the marked rows; with `confirmed`, does it and says what became of each."""
    if request.method == "GET":  # a page of results that is loaded again
        return HttpResponseRedirect(reverse("review:inbox"))
    who, act = person_of(request), _act(request)
    seen: list[Entry] = []
    try:
        wanted = _wanted(request)
        seen = bulk_decisions.look(who, act, wanted)
        if not request.POST.get("confirmed"):
            return _preview(request, act, seen)
        return _result(request, act, bulk_decisions.carry_out(who, _order(request, act), wanted))
    except Invalid as refusal:
        return _preview(request, act, seen, refusal)


def _order(request: HttpRequest, act: Act) -> Order:
    sent = request.POST
    return Order(
        act=act,
        reason_code=sent.get("reason_code", ""),
        note=sent.get("note", "").strip(),
        until=until_from(request) if act == Act.SNOOZE else None,
        key=sent.get("idempotency_key", ""),
    )


def _preview(request: HttpRequest, act: Act, entries: Sequence[Entry], refusal: Invalid | None = None) -> HttpResponse:
    codes, needed = bulk_decisions.reasons(entries)
    going = [entry for entry in entries if not entry.refusal]
    counts = _counts(going)
    context: dict[str, Any] = {
        "act": act.value,
        "label": counts[0][0] if len(counts) == 1 else LABELS[act],
        "going": going,
        "left_out": [entry for entry in entries if entry.refusal],
        "counts": counts,
        "reasons": with_keys(codes),
        "needed": needed,
        "marked": [_value(entry.wanted) for entry in entries],
        **offered(),
        "errors": refusal.errors if refusal else {},
        "given": request.POST,
        "next": _next(request),
    }
    return render(request, "review/bulk.html", context, status=422 if refusal else 200)


def _value(wanted: Wanted) -> str:
    return f"{wanted.subject}:{wanted.item or ''}:{wanted.version}"


def _counts(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    """How many of each decision, the most first."""
    return Counter(_label(entry.verdict) for entry in entries).most_common()


def _label(verdict: Verdict | None) -> str:
    return VERDICTS[verdict].label if verdict else SNOOZED


def _next(request: HttpRequest) -> str:
    return here_or(request, request.POST.get("next"), reverse("review:inbox"))


def _result(request: HttpRequest, act: Act, done: Sequence[Entry]) -> HttpResponse:
    applied = [entry for entry in done if not entry.refusal]
    context = {
        "label": LABELS[act],
        "applied": [(entry, _label(entry.verdict)) for entry in applied],
        "left_out": [entry for entry in done if entry.refusal],
        "n": len(done),
        "made": [entry.made for entry in applied if entry.made],
        "next": _next(request),
    }
    return render(request, "review/bulk_result.html", context)


@require_POST
@page()
def undo(request: HttpRequest) -> HttpResponse:
    """Takes many decisions back, and says which could not be."""
    try:
        made = [UUID(value) for value in request.POST.getlist("made")]
    except ValueError:
        raise Invalid.field("made", "reload the page: this names nothing.") from None
    results = bulk_decisions.undo_each(person_of(request), made)
    texts = decided_texts(made, visible(request))
    refused = [(texts.get(pk, "A lesson that is gone"), why) for pk, why in results if why]
    context = {"n": len(results), "undone": len(results) - len(refused), "refused": refused, "next": _next(request)}
    return render(request, "review/bulk_undone.html", context)
