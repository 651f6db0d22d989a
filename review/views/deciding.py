"""One decision, whatever it is about: the form that asks why, the request that decides, and the undo."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from memory.errors import Conflict, Invalid
from memory.models import Adjudication, Contradiction, Lesson
from memory.models.vocabulary import REASONED_VERDICTS, Verdict
from memory.rules.reasons import reasons_for
from memory.services import adjudication, lesson_verdicts
from memory.services.adjudication import Decision, Stale
from memory.services.rejection import LIVE
from review.access import page, person_of, visible
from review.queries.wordings import FIELDS as WORDINGS
from review.queries.wordings import wordings
from review.words import VERDICTS

FIELDS = (*WORDINGS, "usage", "signal", "keeper")  # what a verdict may carry beside its reason


KEPT = ("item", "subject", "expected_version", "next", *FIELDS)  # what the form of a decision sends along unseen


def here_or(request: HttpRequest, url: str | None, otherwise: str) -> str:
    """The address to go on with, if it is one of this site."""
    if url and url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure()):
        return url
    return otherwise


@require_GET
@page()
def ask(request: HttpRequest, verdict: str) -> HttpResponse:
    """The form that asks for a reason; a dialog with JavaScript, a page without."""
    return _form(request, _verdict(verdict), request.GET)


def _form(
    request: HttpRequest, verdict: Verdict, given: QueryDict, refusal: Invalid | None = None, status: int = 200
) -> HttpResponse:
    words, subject = VERDICTS[verdict], _uuid(given.get("subject"), "subject")
    lesson = Lesson.objects.filter(visible(request), pk=subject).first()
    typed = {name: given.get(name, "") for name in WORDINGS}
    texts = wordings(verdict, subject, visible(request), typed)
    fields = {each.name for each in texts}
    context = {
        "verdict": verdict.value,
        "words": words,
        "reasons": [(f"reason_{n}", code, text) for n, (code, text) in enumerate(reasons_for(verdict.value), start=1)],
        "needed": verdict.value in REASONED_VERDICTS or verdict == Verdict.EXEMPT_ROW,
        "texts": [(each, refusal.errors.get(each.name, []) if refusal else []) for each in texts],
        "note": given.get("note", ""),
        "next": here_or(request, given.get("next"), ""),
        "kept": {key: given.get(key, "") for key in KEPT if key not in fields},
        "chosen": given.get("reason_code", ""),
        "lesson": lesson,
        "effect": _effect(lesson, given) if verdict == Verdict.EXEMPT_ROW else None,
        "errors": {name: said for name, said in refusal.errors.items() if name not in fields} if refusal else {},
    }
    return render(request, "review/ask.html", context, status=status)


def _effect(lesson: Lesson | None, given: QueryDict) -> lesson_verdicts.Effect | None:
    """What excusing the loss would do, shown before it is done."""
    usage = given.get("usage")
    if lesson is None or not usage:
        return None
    return lesson_verdicts.effect_of_excuse(lesson, _uuid(str(usage), "usage"))


@require_POST
@page()
def decide(request: HttpRequest) -> HttpResponse:
    """Decides, then goes on with the page that the form names. A refusal keeps what was typed."""
    sent = request.POST
    verdict = _verdict(sent.get("decision", ""))
    try:
        made = adjudication.decide(_decision(request, verdict))
    except Invalid as refusal:
        return _form(request, verdict, sent, refusal, status=422)
    except Stale as late:
        return _conflict(request, verdict, late)
    messages.success(request, VERDICTS[verdict].done, extra_tags=str(made.pk))
    return HttpResponseRedirect(here_or(request, sent.get("next"), _subject_url(made)))


def _decision(request: HttpRequest, verdict: Verdict) -> Decision:
    sent = request.POST
    try:
        version = int(sent.get("expected_version", ""))
    except ValueError:
        raise Invalid.field("expected_version", "reload the page and decide again.") from None
    return Decision(
        person=person_of(request),
        verdict=verdict,
        subject=_uuid(sent.get("subject"), "subject"),
        item=_uuid(sent["item"], "item") if sent.get("item") else None,
        expected_version=version,
        reason_code=sent.get("reason_code", ""),
        note=sent.get("note", "").strip(),
        idempotency_key=sent.get("idempotency_key", "")[:64],
        data={key: sent[key] for key in FIELDS if key in sent},
    )


def _verdict(value: str) -> Verdict:
    if value not in {verdict.value for verdict in VERDICTS}:
        raise Invalid.field("decision", f"choose one of {', '.join(verdict.value for verdict in VERDICTS)}.")
    return Verdict(value)


def _uuid(value: str | None, field: str) -> UUID:
    try:
        return UUID(value or "")
    except ValueError:
        raise Invalid.field(field, "reload the page: this names nothing.") from None


def _subject_url(made: Adjudication) -> str:
    if Contradiction.objects.filter(pk=made.subject).exists():
        return reverse("review:contradiction", args=[made.subject])
    if Lesson.objects.filter(pk=made.subject).exists():
        return reverse("review:lesson", args=[made.subject])
    return reverse("review:dashboard")


def _conflict(request: HttpRequest, verdict: Verdict, late: Stale) -> HttpResponse:
    """What happened meanwhile, what the person was about to do, and both ways on."""
    sent = request.POST
    subject = _uuid(sent.get("subject"), "subject")
    keep = {key: sent[key] for key in ("subject", "next", "note", *FIELDS) if sent.get(key)}
    keep["expected_version"] = str(adjudication.version_of(subject))
    context: dict[str, Any] = {
        "refusal": late,
        "by": late.by,
        "mine": VERDICTS[verdict],
        "note": sent.get("note", ""),
        "texts": [sent[name] for name in WORDINGS if sent.get(name)],
        "again": f"{reverse('review:ask', args=[verdict.value])}?{urlencode(keep)}",
        "subject": subject,
        **_as_it_is(request, subject, late.by),
        "next": here_or(request, sent.get("next"), reverse("review:dashboard")),
    }
    return render(request, "review/conflict.html", context, status=409)


def _as_it_is(request: HttpRequest, subject: UUID, by: Adjudication | None) -> dict[str, Any]:
    """What the decision was about, as it stands now: a lesson, both sides of a pair, or neither where it is work."""
    pair = Contradiction.objects.filter(visible(request), pk=subject).first()
    names = {pair.first: "A", pair.second: "B"} if pair else {subject: ""}
    lessons = Lesson.objects.filter(visible(request), pk__in=names).select_related("lessonstanding")
    sides = sorted(((names[lesson.pk], lesson) for lesson in lessons), key=lambda side: side[0])
    live = all(lesson.state in LIVE for _, lesson in sides)
    return {
        "sides": sides,
        "pair": pair,
        "about": names.get(by.subject, "") if by else "",
        "settled": pair is not None and (pair.verdict is not None or len(sides) < 2 or not live),
    }


@require_POST
@page()
def undo(request: HttpRequest) -> HttpResponse:
    """Takes the named decision back, or the person's latest."""
    who = person_of(request)
    named = request.POST.get("adjudication")
    latest = adjudication.latest_undoable(who, 1)
    if not named and not latest:
        raise Conflict("There is nothing to undo.")
    made = adjudication.undo(_uuid(named, "adjudication") if named else latest[0].pk, who)
    messages.info(request, f"Undone: {VERDICTS[Verdict(latest_verdict(made))].done.rstrip('.').lower()}.")
    return HttpResponseRedirect(here_or(request, request.POST.get("next"), reverse("review:dashboard")))


def latest_verdict(made: Adjudication) -> str:
    """The verdict that an undo took back."""
    assert made.reverts is not None, "an undo names what it takes back"
    return made.reverts.verdict
