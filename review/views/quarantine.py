"""The quarantine board: lessons that are kept out, tested or were freed lately, and the same as a file."""

import csv
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from memory import conf
from memory.models.vocabulary import Role
from review.access import page, person_of
from review.charts import interval_mini, top_of
from review.queries import quarantine as queries
from review.views.inbox import SKIPPED

COLUMNS: Final = (
    "lesson", "text", "stage", "since", "losses", "judged", "expected_rate", "mean_cohort", "odds_log", "state",
)  # fmt: skip
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would carry out


def _by(request: HttpRequest) -> str:
    by = request.GET.get("by", "stage")
    return by if by in queries.BY else "stage"


def _address(**asked: str) -> str:
    sent = {name: value for name, value in asked.items() if value and (name, value) != ("by", "stage")}
    return f"{reverse('review:quarantine')}?{urlencode(sent)}" if sent else reverse("review:quarantine")


@require_GET
@page()
def board(request: HttpRequest) -> HttpResponse:
    """The board by stage, project, model or week; `burst` opens one burst. Looking changes nothing."""
    who, by, burst = person_of(request), _by(request), request.GET.get("burst", "")
    found = queries.places(who.accounts(), by)
    if burst:
        opened = queries.within(found, burst)
        groups = [queries.Group(name="Burst", places=opened, n=len(opened))]
    else:
        groups = queries.groups(found, by)
    rows = queries.rows(queries.as_one(groups), who.user_id)
    top = top_of([row.estimate for row in rows.values()])
    context: dict[str, Any] = {
        "by": by,
        "burst": burst,
        "ways": [(name, _address(by=name)) for name in queries.BY],
        "groups": [_group(n, group, rows, top) for n, group in enumerate(groups, start=1)],
        "empty": not found,
        "out": sum(place.stage in ("new", "second", "probation", "upheld") for place in found),
        "since": queries.empty_since(),
        "here": _address(by=by, burst=burst),
        "export": f"{reverse('review:quarantine_export')}?{urlencode({'by': by})}",
        "may_decide": bool(who.everywhere or who.accounts(Role.REVIEWER)),
        "trial": conf.current().trust_policy == "trial",
        "skipped": len(request.session.get(SKIPPED, [])),
    }
    return render(request, "review/quarantine.html", context)


def _group(n: int, group: queries.Group, rows: dict[Any, queries.Row], top: float) -> dict[str, Any]:
    held = [rows[place.lesson] for place in group.places if place.lesson in rows]
    return {
        "n": n,
        "action": f"group_{n}" if n <= 6 else "",
        "name": group.name,
        "short": group.name.partition(" in the last ")[0][:24],
        "total": group.n,
        "more": group.n - len(held) - sum(len(burst.lessons) for burst in group.bursts),
        "bursts": [{"burst": burst, "url": _address(burst=burst.name)} for burst in group.bursts],
        "rows": [{"row": row, "stage": queries.STAGES[row.place.stage], "chart": _chart(row, top)} for row in held],
    }


def _chart(row: queries.Row, top: float) -> Any:
    title = "Loss rate beside what was expected"
    return interval_mini(f"rate-{row.lesson.pk}", row.estimate, title=title, top=top)


@require_GET
@page()
def export(request: HttpRequest) -> HttpResponse:
    """Every lesson of the board as CSV."""
    who = person_of(request)
    found = queries.places(who.accounts(), "stage")
    rows = queries.rows(found, who.user_id)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="quarantine.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _line(rows[p.lesson])] for p in found if p.lesson in rows)
    return response


def _line(row: queries.Row) -> list[Any]:
    standing, since, estimate = row.standing, row.place.since, row.estimate
    return [
        row.lesson.pk,
        row.lesson.text,
        queries.STAGES[row.place.stage],
        since.isoformat() if since else "",
        estimate.losses,
        estimate.n,
        "" if estimate.expected is None else round(estimate.expected, 4),
        "" if row.cohort is None else round(row.cohort, 2),
        "" if standing is None or standing.s is None else round(standing.s, 4),
        row.lesson.state,
    ]


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
