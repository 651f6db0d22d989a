"""The plan that makes one lesson of several: read, taken apart, tried on past work, applied and undone."""

import csv
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory import conf
from memory.errors import Conflict, EmbeddingUnavailable, Invalid, NotFound
from memory.models import PrunePlan
from memory.models.vocabulary import Role
from memory.rules.words import count
from memory.services import applying, plan_decisions, pruning
from memory.services.applying import Exclusion, Outcome
from memory.services.scoping import lesson_account
from review import reasons
from review.access import page, person_of
from review.queries import prune as queries
from review.queries import prune_plans as plans
from review.queries.prune import Reading

NEEDS = "Applying and undoing a plan needs the role maintainer. A maintainer of the account can give it."
COLUMNS = (
    "plan", "status", "keeper", "keeper_text", "lesson", "text", "cosine", "state", "servings", "wins", "losses",
    "evidence_rows", "last_served", "risk", "change", "result",
)  # fmt: skip


@require_GET
@page()
def index(request: HttpRequest) -> HttpResponse:
    """The latest plan, or where the person sees several scopes the latest of each; and what can be undone."""
    who = person_of(request)
    found = plans.latest(who.accounts())
    context: dict[str, Any] = {
        "restorable": plans.restorable(who.accounts()),
        "scopes": _scopes(request, found),
        "days": conf.current().prune_archive_days,
    }
    if len(found) == 1:
        return _show(request, found[0], context)
    context["rows"] = [(plan, queries.name_of(queries.account_of(plan)), _going(plan)) for plan in found]
    return render(request, "review/prune_plans.html", context)


def _going(plan: PrunePlan) -> int:
    return sum(len(cluster["members"]) for cluster in plan.clusters)


def _scopes(request: HttpRequest, found: list[PrunePlan]) -> list[dict[str, Any]]:
    """The scopes for which the person may ask for a plan, and have none."""
    who, have = person_of(request), {queries.account_of(plan) for plan in found}
    mine = who.accounts(Role.REVIEWER)
    wanted = {lesson_account(account) for account in mine} if mine is not None else {lesson_account(None)}
    if mine is None and conf.current().lesson_scope == "account":
        wanted = set()  # an operator asks for one account's plan after the job has made it
    return [{"account": scope or "", "name": queries.name_of(scope)} for scope in wanted - have]


@require_GET
@page()
def detail(request: HttpRequest, digest: str) -> HttpResponse:
    """One plan, also an old one, an applied one, or one that the store has moved away from. Reading changes nothing."""
    return _show(request, _find(request, digest), {})


def _find(request: HttpRequest, digest: str) -> PrunePlan:
    plan = PrunePlan.objects.filter(digest=digest).first()
    mine = person_of(request).accounts()
    if plan is None or not (mine is None or queries.account_of(plan) in (None, *mine)):
        raise NotFound("There is no such plan, or it is in an account that you are no member of.")
    return plan


def _show(
    request: HttpRequest,
    plan: PrunePlan,
    context: dict[str, Any],
    refusal: Invalid | None = None,
    status: int = 200,
) -> HttpResponse:
    who, reading = person_of(request), queries.read(plan)
    may = who.may(Role.MAINTAINER, reading.account)
    sent = request.POST
    context |= {
        "reading": reading,
        "plan": plan,
        "scope": queries.name_of(reading.account),
        "may": may,
        "why_not": "" if may else NEEDS,
        "may_replan": who.may(Role.REVIEWER, reading.account),
        "codes": reasons.KEEP,
        "kept": _typed(request),
        "count": sent.get("count", ""),
        "errors": refusal.errors if refusal else {},
        "simulation": plans.simulate(plan, who.accounts()) if "simulate" in request.GET else None,
        "days": conf.current().prune_archive_days,
        "size": (plan.states.get("search") or {}).get("fingerprint", [None])[0],
    }
    if not reading.going:
        context["candidates"] = _candidates(reading.account)
    return render(request, "review/prune_plan.html", context, status=status)


def _candidates(account: UUID | None) -> list[plans.Candidate] | None:
    try:
        return plans.candidates(pruning.scope(account))
    except EmbeddingUnavailable:
        return None


def _typed(request: HttpRequest) -> dict[str, tuple[str, str]]:
    """The rows that were unchecked: their code and note, by lesson."""
    sent = request.POST
    merged = set(sent.getlist("merge"))
    return {
        lesson: (sent.get(f"reason_{lesson}", ""), sent.get(f"note_{lesson}", "").strip())
        for lesson in sent.getlist("row")
        if lesson not in merged
    }


@require_POST
@page()
def apply(request: HttpRequest, digest: str) -> HttpResponse:
    """Applies the plan but for the unchecked rows, for a maintainer who typed how many lessons go."""
    plan = _find(request, digest)
    account = queries.account_of(plan)
    person_of(request).need(Role.MAINTAINER, account)
    try:
        typed, exclude = _count(request), _exclusions(request)
        outcomes = plan_decisions.apply_plan(person_of(request), account, digest, typed=typed, exclude=exclude)
    except Invalid as refusal:
        return _show(request, plan, {}, refusal, 422)
    except Conflict as moved:  # the page says what has changed, and keeps why rows were to stay
        return _show(request, plan, {"conflict": moved.detail}, status=409)
    messages.success(request, _told(outcomes))
    return HttpResponseRedirect(reverse("review:prune_plan", args=[digest]))


def _count(request: HttpRequest) -> int:
    given = request.POST.get("count", "").strip().replace(",", "")
    if not (given.isascii() and given.isdigit() and len(given) < 9):
        raise Invalid.field("count", "type how many lessons would be merged.")
    return int(given)


def _exclusions(request: HttpRequest) -> list[Exclusion]:
    found = []
    for lesson, (code, note) in _typed(request).items():
        try:
            reason = reasons.in_words(reasons.KEEP, code, note)
            found.append(Exclusion(lesson=UUID(lesson), reason=reason))
        except Invalid as refusal:
            said = next(iter(refusal.errors.values()))
            raise Invalid("Say why each unchecked row stays.", {lesson: said}) from None
        except ValueError:
            raise Invalid.field("count", "reload the page: one of its rows names nothing.") from None
    return found


def _told(outcomes: list[Outcome]) -> str:
    merged = sum(len(outcome.pruned) for outcome in outcomes)
    kept = sum(len(outcome.excluded) for outcome in outcomes)
    skipped = sum(bool(outcome.skipped) for outcome in outcomes)
    parts = [f"{count(merged, 'lesson')} merged"]
    parts += [f"{kept} kept"] if kept else []
    parts += [f"{count(skipped, 'cluster')} skipped, because it changed meanwhile"] if skipped else []
    return ", ".join(parts) + "."


@require_http_methods(["GET", "POST"])
@page()
def restore(request: HttpRequest, digest: str) -> HttpResponse:
    """Brings everything back that the plan merged: first what comes back, then the act."""
    plan = _find(request, digest)
    account = queries.account_of(plan)
    if request.method == "GET":
        return _restore_form(request, plan)
    person_of(request).need(Role.MAINTAINER, account)
    try:
        note = request.POST.get("note", "").strip()
        reason = reasons.in_words(reasons.UNDO_PLAN, request.POST.get("reason_code", ""), note)
    except Invalid as refusal:
        return _restore_form(request, plan, refusal, 422)
    lessons = applying.restore(account, digest, reviewer=person_of(request).user_id, reason=reason)
    messages.success(request, f"{count(len(lessons), 'lesson')} restored with all that was known of them.")
    return HttpResponseRedirect(reverse("review:prune_plan", args=[digest]))


def _restore_form(
    request: HttpRequest, plan: PrunePlan, refusal: Invalid | None = None, status: int = 200
) -> HttpResponse:
    reading = queries.read(plan)
    may = person_of(request).may(Role.MAINTAINER, reading.account)
    context = {
        "plan": plan,
        "reading": reading,
        "lost": [(row, group) for group in reading.groups for row in group.rows if row.result == "merged"],
        "refusal": "" if reading.restorable_until else "There is nothing in the archive any more to restore.",
        "why_not": "" if may else NEEDS,
        "reasons": reasons.with_keys(reasons.UNDO_PLAN),
        "chosen": request.POST.get("reason_code", ""),
        "note": request.POST.get("note", ""),
        "errors": refusal.errors if refusal else {},
    }
    return render(request, "review/prune_restore.html", context, status=status)


@require_POST
@page()
def replan(request: HttpRequest) -> HttpResponse:
    """The plan of now. It changes no lesson."""
    given = request.POST.get("account", "")
    try:
        account = UUID(given) if given else None
    except ValueError:
        raise NotFound("There is no such account.") from None
    person_of(request).need(Role.REVIEWER, account)
    plan = pruning.current(account)
    same = plan.digest == request.POST.get("digest")
    messages.info(request, "The store has not moved: this still is the plan." if same else "Planned anew.")
    return HttpResponseRedirect(reverse("review:prune_plan", args=[plan.digest]))


@require_GET
@page()
def export(request: HttpRequest, digest: str, kind: str) -> HttpResponse:
    """Every row of the plan as CSV, or as one JSON object a line."""
    plan = _find(request, digest)
    if kind not in ("csv", "ndjson"):
        raise NotFound("A plan can be had as csv or as ndjson.")
    rows = list(_rows(queries.read(plan)))
    if kind == "csv":
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        writer = csv.DictWriter(response, COLUMNS)
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    else:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        response = HttpResponse(lines, content_type="application/x-ndjson; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="plan-{digest[:8]}.{kind}"'
    return response


def _rows(reading: Reading) -> Iterator[dict[str, Any]]:
    for group in reading.groups:
        for row in group.rows:
            side = row.side
            yield {
                "plan": reading.plan.digest,
                "status": reading.status,
                "keeper": str(group.keeper.lesson),
                "keeper_text": group.keeper.text,
                "lesson": str(side.lesson),
                "text": side.text,
                "cosine": row.cosine,
                "state": side.state,
                "servings": side.servings,
                "wins": side.wins,
                "losses": side.losses,
                "evidence_rows": side.rows,
                "last_served": side.last_served.isoformat() if side.last_served else None,
                "risk": round(row.risk, 4),
                "change": row.change,
                "result": row.result,
            }


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is made a text again (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
