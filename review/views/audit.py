"""The audit log: who did what to which, when and why."""

import csv
from collections.abc import Iterator
from typing import Any, Final, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from memory.errors import Invalid
from memory.models.vocabulary import OperatorAction, Verdict
from memory.rules.reasons import reason_in_words
from review.access import page, person_of
from review.events import EVENTS, event_in_words
from review.queries import audit as reads
from review.queries.actors import names
from review.queries.audit import ACTIONS, Entry, Thing, Wanted
from review.words import VERDICTS

PLACES: Final = {
    "lesson": "review:lesson",
    "interaction": "review:interaction",
    "preference": "review:preference",
    "contradiction": "review:contradiction",
}
OTHERS: Final = {
    Verdict.UNDO.value: "Undid a decision",
    Verdict.MERGE.value: "Merged",
    "apply": "Preference changed",
    "rollback": "Preference rolled back",
    "erased": "Erased",
    "role_granted": "Role given",
    "role_changed": "Role changed",
    "role_removed": "Role taken away",
    OperatorAction.KEY_MADE.value: "API key made",
    OperatorAction.KEY_ROTATED.value: "API key replaced",
    OperatorAction.KEY_REVOKED.value: "API key revoked",
    OperatorAction.DISTILLATION_RETRIED.value: "Distillation tried again",
    OperatorAction.DISTILLATION_CANCELLED.value: "Distillation called off",
    OperatorAction.LESSON_REEMBEDDED.value: "Embedded anew",
}
COLUMNS: Final = ("id", "at", "journal", "action", "actor", "account", "subject", "reason", "note")
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would carry out


@require_GET
@page()
def log(request: HttpRequest) -> HttpResponse:
    """One page of it, newest first; the address says which part."""
    wanted, errors = _wanted(request)
    found = [] if errors else reads.entries(wanted, reads.PAGE + 1)
    shown = found[: reads.PAGE]
    things, called = reads.things([each.subject for each in shown], wanted.accounts), names(e.actor for e in shown)
    address = request.GET.copy()
    address.pop("before", None)
    context = {
        "rows": [_row(each, things.get(each.subject), called[each.actor]) for each in shown],
        "older": shown[-1].id if len(found) > reads.PAGE else None,
        "address": address.urlencode(),
        "actions": list(ACTIONS),
        "filtered": bool(wanted.actor or wanted.subject or wanted.action or errors),
        "errors": errors,
        "asked": request.GET,
    }
    return render(request, "review/audit.html", context, status=422 if errors else 200)


def _wanted(request: HttpRequest) -> tuple[Wanted, dict[str, str]]:
    asked, errors, ids = request.GET, {}, {}
    for name, words in (("object", "This is no id: copy it from an address or a row."), ("before", "Reload the page.")):
        try:
            ids[name] = UUID(asked[name].strip()) if asked.get(name, "").strip() else None
        except ValueError:
            ids[name], errors[name] = None, words
    if asked.get("action") and asked["action"] not in ACTIONS:
        errors["action"] = "Choose one of the list."
    wanted = Wanted(
        accounts=person_of(request).accounts(),
        actor=reads.actor_of(asked.get("actor", "").replace("\x00", "").strip()[:80]),
        subject=ids["object"],
        action=asked.get("action", ""),
        before=ids["before"],
    )
    return wanted, errors


def _row(entry: Entry, thing: Thing | None, who: str) -> dict[str, Any]:
    place = PLACES.get(thing.kind) if thing else None
    reason = reason_in_words(entry.reason) if entry.journal == "decision" and entry.reason else entry.reason
    return {
        "entry": entry,
        "words": _words(entry.action),
        "chip": EVENTS[entry.action][1] if entry.journal == "trust" else "",
        "who": who,
        "reason": reason,
        "line": thing.line if thing else "",
        "kind": thing.kind if thing else "",
        "url": reverse(place, args=[entry.subject]) if place else "",
    }


def _words(action: str) -> str:
    if action in OTHERS:
        return OTHERS[action]
    verdicts = {verdict.value: words.done.rstrip(".") for verdict, words in VERDICTS.items()}
    return verdicts.get(action) or event_in_words(action)


@require_GET
@page()
def export(request: HttpRequest) -> HttpResponse:
    """The whole log, or what the filters leave of it, as CSV; it is sent as it is read."""
    wanted, errors = _wanted(request)
    if errors:
        raise Invalid("The filters cannot be read: " + " ".join(errors.values()))
    response = StreamingHttpResponse(_lines(wanted), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return cast(HttpResponse, response)  # Django types a streamed answer apart; middleware and servers take either


class _Line:
    """A file that gives back what is written to it."""

    def write(self, line: str) -> str:
        return line


def _lines(wanted: Wanted) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield str(writer.writerow(COLUMNS))
    for batch in reads.everything(wanted):
        yield "".join(str(writer.writerow(_cells(entry))) for entry in batch)


def _cells(entry: Entry) -> list[str]:
    values = [str(getattr(entry, name)) for name in COLUMNS if name != "at"]
    values.insert(COLUMNS.index("at"), entry.at.isoformat())
    return [f"'{value}" if value.startswith(FORMULA) else value for value in values]
