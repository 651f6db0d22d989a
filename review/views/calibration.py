"""Thresholds of relevance: what is in force, what the evidence proposes, applying it, and taking it back."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from memory import conf
from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import Calibration, EmbeddingSpace, JobRun
from memory.models.vocabulary import Role
from memory.services import calibration
from memory.services.calibration import Values
from memory.services.labelled import of_store
from review.access import page, person_of
from review.queries import calibration as reads

NEEDS: Final = "Thresholds hold for the whole installation: measuring and applying needs the role maintainer."
NEEDS_OPERATOR: Final = "Thresholds hold for every account here: measuring and applying needs an operator."
TASKS: Final = 120  # asked while somebody waits: a few seconds


@require_GET
@page()
def thresholds(request: HttpRequest) -> HttpResponse:
    """The page. Reading changes nothing."""
    return _show(request)


@require_POST
@page()
def measure(request: HttpRequest) -> HttpResponse:
    """Makes a proposal of the store's own evidence."""
    _need(request)
    calibration.propose(of_store(most=TASKS))
    return HttpResponseRedirect(reverse("review:calibration"))


@require_POST
@page()
def apply(request: HttpRequest) -> HttpResponse:
    """Applies a proposal, or what was in force before an entry of the journal. The values come from the store."""
    _need(request)
    space = _space()
    values, digest = _wanted(request, space)
    who = person_of(request)
    try:
        calibration.apply(
            space.pk,
            values,
            expected=request.POST.get("expected_version", ""),
            actor=who.actor,
            reason=request.POST.get("reason", "").strip(),
            data_digest=digest,
        )
    except Invalid as refusal:
        return _show(request, refusal, 422)
    except Conflict as late:
        if not _was_mine(who.actor, values):
            return _show(request, late, 409)
    messages.success(request, "The thresholds are in force from the next question on.")
    return HttpResponseRedirect(reverse("review:calibration"))


def _was_mine(actor: str, values: Values) -> bool:
    """Whether the same form was sent twice: the last change is this person's, and is what they ask for."""
    space = _space()
    last = Calibration.objects.filter(space=space).order_by("-created_at", "-id").first()
    return last is not None and last.actor == actor and calibration.values_of(space) == values


def _space() -> EmbeddingSpace:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    if space is None:
        raise NotFound("No embedding space is open yet.")
    return space


def _wanted(request: HttpRequest, space: EmbeddingSpace) -> tuple[Values, str]:
    """What is to be applied, with the digest of the questions behind it."""
    nothing = NotFound("There is no such proposal or entry for the space in use. Reload the page.")
    kind, _, name = request.POST.get("what", "").partition(":")
    try:
        named = UUID(name)
    except ValueError:
        raise nothing from None
    if kind == "before":
        entry = Calibration.objects.filter(pk=named, space=space).first()
        if entry is not None:
            return calibration.former(entry, calibration.values_of(space)), entry.data_digest
    run = JobRun.objects.filter(pk=named, job=calibration.JOB, figures__space=str(space.pk)).first()
    if kind == "proposal" and run is not None:
        proposal = calibration.from_json(run.figures)
        if proposal.proposed is not None:
            return proposal.proposed, proposal.data_digest
    raise nothing


def _why_not(request: HttpRequest) -> str:
    """Why the person may not change thresholds; '' if they may."""
    who = person_of(request)
    if conf.current().lesson_scope == "account":
        return "" if who.everywhere else NEEDS_OPERATOR
    return "" if who.may(Role.MAINTAINER, None) else NEEDS


def _need(request: HttpRequest) -> None:
    if why_not := _why_not(request):
        raise Forbidden(why_not)


def _show(request: HttpRequest, refusal: Invalid | Conflict | None = None, status: int = 200) -> HttpResponse:
    space = EmbeddingSpace.objects.filter(is_active=True).first()
    context: dict[str, Any] = {"space": space, "why_not": _why_not(request), "refusal": refusal}
    if space is not None:
        context |= _read(request, space)
    return render(request, "review/calibration.html", context, status=status)


def _read(request: HttpRequest, space: EmbeddingSpace) -> dict[str, Any]:
    present = calibration.values_of(space)
    found = calibration.latest_proposal(space)
    context: dict[str, Any] = {
        "present": reads.rows(present, present),
        "version": calibration.version_of(present),
        "history": reads.history(space),
        "what": request.POST.get("what", ""),
        "reason": request.POST.get("reason", ""),
        "tables": request.GET.get("tables") == "1",
    }
    if found is None:
        return context
    proposal, run = found
    moved = proposal.version != context["version"]
    beside = "when measured" if moved else "in force"
    return {
        **context,
        "proposal": proposal,
        "run": run,
        "moved": moved,
        "beside": beside,
        "same": proposal.proposed == present,
        "rows": reads.rows(proposal.present, proposal.proposed or proposal.present),
        "does": (reads.does(proposal.present_does), reads.does(proposal.proposed_does)),
        "basis": reads.basis(proposal),
        "pictures": reads.pictures(proposal, beside),
    }
