"""Calibration and health: whether quarantine can be trusted, and whether the store learns."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from memory.errors import Invalid
from memory.models import AlertAcknowledgement
from memory.models.vocabulary import Role
from memory.rules.description import span
from memory.services import alerts
from memory.services.health import HealthReport, report
from memory.services.health.report import JobState
from review.access import page, person_of
from review.accounts import Choice, choose
from review.charts import Bin, reliability, reliability_table
from review.keys import KEYS
from review.places import queue_url
from review.queries import health as reads
from review.queries.agreement import agreement
from review.queries.alerts import warnings

WINDOWS: Final = {"7": "7 days", "28": "28 days", "90": "90 days", "365": "a year"}
USUAL: Final = "28"
#: What waits for each job: the queue of the report that it empties.
EMPTIES: Final = {"credit_sweep": "credit", "distill_sweep": "distillation"}
EXPECTED, OBSERVED = "Expected to lose", "Lost"


@require_GET
@page()
def health(request: HttpRequest) -> HttpResponse:
    """The page; its window, account and form are in the address."""
    return _show(request)


@require_POST
@page(Role.REVIEWER)
def acknowledge(request: HttpRequest) -> HttpResponse:
    """Somebody has seen a warning, and says what becomes of it. A warning that is over is a conflict."""
    choice, sent = choose(request), request.POST
    try:
        found = report(choice.account_id)
        alerts.acknowledge(person_of(request), choice.account_id, sent.get("alert", ""), sent.get("note", ""), found)
    except Invalid as refusal:
        return _show(request, refusal, 422)
    messages.success(request, "Acknowledged. It comes back if it worsens, and in four weeks.")
    return _back(choice)


@require_POST
@page(Role.REVIEWER)
def mind_again(request: HttpRequest) -> HttpResponse:
    """Takes an acknowledgement back."""
    choice = choose(request)
    alerts.mind_again(person_of(request), choice.account_id, request.POST.get("alert", ""), timezone.now())
    messages.success(request, "The warning is shown again.")
    return _back(choice)


def _back(choice: Choice) -> HttpResponse:
    query = f"?account={choice.account.slug}" if choice.account else ""
    return HttpResponseRedirect(reverse("review:health") + query)


def _show(request: HttpRequest, refusal: Invalid | None = None, status: int = 200) -> HttpResponse:
    choice, days, now = choose(request), _days(request), timezone.now()
    figures = _figures(request, choice, now, now - timedelta(days=int(days)))
    seen, decided = figures["exposures"], reads.decided(figures["fates"])
    labels = {key.action: key.label for key in KEYS if key.scope == "go"}
    context = {
        **figures,
        "choice": choice,
        "may_acknowledge": person_of(request).may(Role.REVIEWER, choice.account_id),
        "typed": {"alert": request.POST.get("alert", ""), "note": request.POST.get("note", "")},
        "errors": refusal.errors if refusal else {},
        "decided": decided,
        "decided_span": span(decided.interval),
        "left_out": reads.together(seen.withheld),
        "days": days,
        "windows": WINDOWS,
        "tables": request.GET.get("tables") == "1",
        "toggle": _toggled(request),
        "charts": [_chart("served", seen.served), _chart("withheld", seen.withheld)],
        "queues": [{"ages": each, "label": labels[each.name], "url": queue_url(each.name)} for each in figures["ages"]],
        "jobs": _jobs(figures["report"], figures["durations"], now),
        "window": WINDOWS[days],
    }
    return render(request, "review/health.html", context, status=status)


@require_GET
@page()
def export(request: HttpRequest) -> HttpResponse:
    """Every figure of the page as JSON."""
    choice, days, now = choose(request), _days(request), timezone.now()
    figures = _figures(request, choice, now, now - timedelta(days=int(days)))
    body = {"account": choice.account.slug if choice.account else None, "window_days": int(days)}
    body |= {name: _plain(value) for name, value in figures.items()}
    answer = JsonResponse(body, json_dumps_params={"indent": 2})
    answer["Content-Disposition"] = 'attachment; filename="health.json"'
    return answer


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, AlertAcknowledgement):
        return {"note": value.note, "by": value.person.get_username(), "at": value.created_at}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


def _days(request: HttpRequest) -> str:
    asked = request.GET.get("days", USUAL)
    return asked if asked in WINDOWS else USUAL


def _figures(request: HttpRequest, choice: Choice, now: datetime, since: datetime) -> dict[str, Any]:
    """Everything that is read, a constant number of queries."""
    found, seen = reads.fates(choice.account_id, since), reads.exposures(choice.account_id, since)
    made = report(choice.account_id, now)
    accounts = None if choice.account is None else [choice.account.pk]
    return {
        "report": made,
        "warnings": warnings(choice, made.reasons, now),
        "trust": reads.trust(found, seen),
        "fates": found,
        "exposures": seen,
        "agreement": agreement(accounts, since),
        "ages": reads.ages(person_of(request).accounts() if choice.account is None else accounts),
        "durations": reads.durations([job.job for job in made.jobs]),
    }


def _chart(name: str, bins: Sequence[Bin]) -> dict[str, Any]:
    titles = {"served": "Handed out", "withheld": "Left out: by coin and by quarantine"}
    return {
        "name": name,
        "title": titles[name],
        "n": sum(each.n for each in bins),
        "svg": reliability(f"reliability-{name}", bins, title=titles[name], predicted=EXPECTED, observed=OBSERVED),
        "table": reliability_table(bins, title=titles[name], predicted=EXPECTED, observed=OBSERVED),
    }


def _jobs(made: HealthReport, durations: dict[str, timedelta], now: datetime) -> list[dict[str, Any]]:
    waiting = {queue.name: queue.waiting for queue in made.queues}
    backlog = {job: waiting[queue] for job, queue in EMPTIES.items()} | {"embed_sweep": made.vectors.missing}
    return [
        {
            "job": job,
            "unfinished": _unfinished(job, now),
            "took": _seconds(durations.get(job.job)),
            "backlog": backlog.get(job.job),
        }
        for job in made.jobs
    ]


def _unfinished(job: JobState, now: datetime) -> str:
    """What is to be said of a run that has not ended: a worker is at it, or went away with it."""
    if job.started_at is None or job.outcome:
        return ""
    return "running now" if now - job.started_at < timedelta(seconds=job.every_seconds) else "did not end"


def _seconds(took: timedelta | None) -> str:
    return "" if took is None else f"{took.total_seconds():,.1f} s"


def _toggled(request: HttpRequest) -> str:
    """The same address with the tables open, or with the charts."""
    address = request.GET.copy()
    if address.pop("tables", None) is None:
        address["tables"] = "1"
    return f"?{address.urlencode()}"
