"""A lesson with its evidence: why it is where it is, and what a person can do about it."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory import conf
from memory.errors import NotFound
from memory.models import Lesson, ReviewItem
from memory.models.vocabulary import LessonState, Role, Verdict
from memory.rules.description import describe_evidence
from memory.rules.outlook import WRONG, lead, odds_in_words, odds_needed, would_free, would_quarantine
from memory.services.authority import Person
from memory.services.reading import neighbours_of
from memory.services.rejection import LIVE
from review.access import page, person_of, visible
from review.charts.intervals import Estimate, forest, forest_table
from review.charts.odds import OddsRow, odds_line, odds_table
from review.charts.timeline import Timeline, timeline, timeline_table
from review.queries import lesson as queries
from review.queries.card import successor
from review.queries.outcomes import standing_of
from review.words import VERDICTS

PAGE_SIZE = 50
#: What can be decided in each state: (verdict, action of its key, emphasis), the safest first.
CHOICES: dict[str, tuple[tuple[Verdict, str, str], ...]] = {
    "candidate": (
        (Verdict.APPROVE, "serve", "primary"),
        (Verdict.QUARANTINE, "keep_out", ""),
        (Verdict.REJECT, "reject", "danger"),
        (Verdict.EDIT, "edit", ""),
    ),
    "active": (
        (Verdict.APPROVE, "serve", ""),
        (Verdict.QUARANTINE, "keep_out", ""),
        (Verdict.REJECT, "reject", "danger"),
        (Verdict.EDIT, "edit", ""),
    ),
    "quarantined": (
        (Verdict.RELEASE_TO_TRIAL, "serve", ""),  # none is filled: the page shows the evidence and recommends nothing
        (Verdict.UPHOLD, "keep_out", ""),
        (Verdict.RELEASE, "release", ""),
        (Verdict.REJECT, "reject", "danger"),
        (Verdict.EDIT, "edit", ""),
    ),
    "rejected": ((Verdict.RESTORE, "serve", ""),),
    "superseded": ((Verdict.RESTORE, "serve", ""),),
}
AT_ONCE = (Verdict.APPROVE, Verdict.UPHOLD)  # need no reason: one key decides


@require_GET
@page()
def index(request: HttpRequest) -> HttpResponse:
    """Lessons found by words, newest first without any."""
    words = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    found = Lesson.objects.filter(visible(request))
    if words:
        found = found.filter(text__icontains=words)
    state = request.GET.get("state", "")
    if state in CHOICES:
        found = found.filter(state=state)
    rows = list(found.select_related("lessonstanding").order_by("-id")[: PAGE_SIZE + 1])
    context = {"rows": rows[:PAGE_SIZE], "more": len(rows) > PAGE_SIZE, "q": words, "state": state, "states": CHOICES}
    return render(request, "review/lessons.html", context)


@require_GET
@page()
def detail(request: HttpRequest, lesson_id: UUID) -> HttpResponse:
    """The lesson's page. Reading it changes nothing."""
    lesson = (
        Lesson.objects.filter(visible(request), pk=lesson_id).select_related("reviewed_by", "lessonstanding").first()
    )
    if lesson is None:
        return _merged(request, lesson_id)
    accounts = person_of(request).accounts()
    item = queries.open_item(lesson.pk)
    history = queries.events(lesson.pk)
    by_person = queries.kept_out_by_person(lesson, history)
    found = queries.evidence(lesson, accounts, by_person)
    life = queries.life(lesson, history, timezone.now(), accounts)
    evidence, rows = found.figures, found.rows
    charts = _charts(evidence, rows, life.strip, queries.segments(lesson.pk, accounts))
    context = {
        "lesson": lesson,
        "standing": standing_of(lesson),
        "item": item,
        "holder": held_by_another(item, person_of(request)),
        "live": lesson.state in LIVE,
        "successor": None if lesson.state in LIVE else successor(lesson.pk),
        "served": life.served,
        "evidence": evidence,
        "description": describe_evidence(evidence),
        "rows": rows,
        "losses": [row for row in rows if row.lost],
        "elsewhere": found.elsewhere,
        "withheld": len(found.withheld | life.withheld),
        "excused": queries.excused(lesson.pk),
        "charts": charts,
        "segmented": any(chart["name"] == "segment" for chart in charts),
        "lead": lead(evidence),
        "outlook": _outlook(lesson, evidence, by_person),
        "wrong": WRONG.get(evidence.get("policy", ""), ""),
        "odds": odds_in_words(evidence["odds"]) if evidence.get("odds") else "",
        "limit": _limit(lesson, evidence, by_person),
        "history": queries.told(history),
        "said": queries.said(lesson.pk),
        "contradictions": queries.contradictions(lesson.pk),
        "neighbours": neighbours_of(lesson, 5),
        **choices(request, lesson, item),
    }
    return render(request, "review/lesson.html", context)


def _merged(request: HttpRequest, lesson_id: UUID) -> HttpResponse:
    """The page of the lesson that this one has become part of. Raises NotFound if the person may see none."""
    kept = successor(lesson_id)
    if kept is None or not Lesson.objects.filter(visible(request), pk=kept).exists():
        raise NotFound("There is no such lesson, or it is in an account that you are no member of.")
    messages.info(request, "The lesson that you asked for has become part of this one.")
    return HttpResponseRedirect(reverse("review:lesson", args=[kept]))


def held_by_another(item: ReviewItem | None, who: Person) -> str:
    """The name of somebody else who is at the question; empty if nobody is."""
    if item is None or item.claimed_by is None or item.claimed_by_id == who.user_id:
        return ""
    expires = item.claim_expires_at
    return item.claimed_by.get_username() if expires and expires > timezone.now() else ""


def _outlook(lesson: Lesson, evidence: dict[str, Any], by_person: bool) -> str:
    """What would change where it is."""
    if lesson.state == LessonState.QUARANTINED:
        return would_free(evidence, by_person=by_person)
    return would_quarantine(evidence) if lesson.state == LessonState.ACTIVE else ""


def _limit(lesson: Lesson, evidence: dict[str, Any], by_person: bool) -> str:
    """The odds at which it would be elsewhere; empty where the odds alone decide nothing."""
    if evidence.get("policy") != "trial":
        return ""
    if lesson.state == LessonState.QUARANTINED and not by_person:
        return f"free at {odds_in_words(evidence['constants']['release_odds'])} : 1 or below"
    if lesson.state == LessonState.ACTIVE:
        return f"kept out from {odds_in_words(odds_needed(evidence))} : 1 on"
    return ""


def choices(request: HttpRequest, lesson: Lesson, item: Any, onward: str = "") -> dict[str, Any]:
    """What the decision bar needs: the verdicts of the lesson's state, and whether this person may give them."""
    who, version = person_of(request), queries.version(lesson.pk, item)
    asked = {"subject": lesson.pk, "item": item.pk if item else "", "expected_version": version}
    asked["next"] = onward or reverse("review:lesson", args=[lesson.pk])
    verdicts = [
        {"verdict": verdict.value, "words": VERDICTS[verdict], "action": action, "emphasis": emphasis,
         "at_once": verdict in AT_ONCE, "ask": f"{reverse('review:ask', args=[verdict.value])}?{urlencode(asked)}"}
        for verdict, action, emphasis in CHOICES[lesson.state]
        if not (verdict == Verdict.RELEASE_TO_TRIAL and conf.current().trust_policy != "trial")
        and not (verdict == Verdict.APPROVE and lesson.state == "active" and lesson.reviewed_at)
    ]  # fmt: skip
    if conf.current().trust_policy != "trial":
        for row in verdicts:
            row["action"] = "serve" if row["verdict"] == Verdict.RELEASE.value else row["action"]
    may = who.may(Role.REVIEWER, lesson.account_id)
    why = "" if may else "Deciding needs the role reviewer. A maintainer of the account can give it."
    return {"choices": verdicts, "version": version, "asked": asked, "may_decide": may, "why_not": why}


def _charts(
    evidence: dict[str, Any], rows: list[queries.Row], strip: Timeline, parts: list[queries.Segment]
) -> list[dict[str, Any]]:
    """Each chart with its table."""
    found = [
        {"name": "timeline", "svg": timeline("strip", strip, title="Servings over time"),
         "table": timeline_table(strip, title="Servings over time")},
    ]  # fmt: skip
    compared = _compared(evidence)
    if compared:
        title = "With it and without it"
        chart = {"name": "compared", "svg": forest("compared", compared, title=title)}
        found.insert(0, chart | {"table": forest_table(compared, title=title)})
    odds = [
        OddsRow(label=f"{row.figures['at']:%-d %b %H:%M}", lost=row.lost, odds=max(1.0, row.figures["odds"]))
        for row in reversed(rows)
        if "odds" in row.figures
    ]
    if odds:
        title = "Odds after each serving"
        found.append(
            {"name": "odds", "svg": odds_line("odds", odds, title=title), "table": odds_table(odds, title=title)}
        )
    for by in ("project", "model", "tier", "week"):
        estimates = [part.estimate for part in parts if part.by == by][:8]
        if len(estimates) > 1:
            title = f"By {by}"
            svg, table = forest(f"by-{by}", estimates, title=title), forest_table(estimates, title=title)
            found.append({"name": "segment", "svg": svg, "table": table})
    return found


def _compared(evidence: dict[str, Any]) -> list[Estimate]:
    """Work with the lesson beside the same kind of work without it."""
    found = []
    with_it = evidence.get("with_it")
    if with_it and with_it["n"]:
        rate = with_it["expected"] / with_it["n"]
        found.append(Estimate(label="With it", losses=with_it["lost"], n=with_it["n"], expected=min(1.0, rate)))
    for kind, label in (("coin", "Left out by a coin"), ("quarantine", "Kept out by quarantine")):
        part = (evidence.get("without_it") or {}).get(kind)
        if part and part["n"]:
            rate = min(1.0, part["expected"] / part["n"])
            found.append(Estimate(label=label, losses=part["lost"], n=part["n"], expected=rate, series="second"))
    return found
