"""The inbox: a list of questions beside the one that is looked at. Looking changes nothing."""

from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from memory.errors import NotFound
from memory.models import Lesson, ReviewItem
from memory.models.vocabulary import LessonState, ReviewKind, Role, Verdict
from memory.services.adjudication import ACTS
from memory.services.bulk_decisions import Act, verdict_for
from memory.services.questions import UNRESOLVED
from memory.services.rejection import LIVE
from review.access import own, page, person_of, visible
from review.places import KINDS, item_url
from review.queries import card as cards
from review.queries import inbox as queries
from review.queries.lesson import open_item as open_item_of
from review.views import lesson as lesson_page
from review.words import VERDICTS

SKIPPED: Final = "skipped_items"  # in the session
REMEMBERED: Final = 500  # skipped questions; of more, the first come again
ABOUT_A_LESSON: Final = queries.LESSON_KINDS
WORDS: Final = 200  # characters of a search


def skipped(request: HttpRequest) -> list[UUID]:
    """What was skipped in this session."""
    return [UUID(each) for each in request.session.get(SKIPPED, [])]


def _uuid(value: str) -> UUID | None:
    """An id in an address; None for what names nothing."""
    try:
        return UUID(value)
    except ValueError:
        return None


def _filters(request: HttpRequest) -> queries.Filters:
    sent = request.GET
    tab, kind = sent.get("tab", ""), sent.get("kind", "")
    return queries.Filters(
        tab=tab if tab in queries.TABS else "new",
        kind=kind if kind in ABOUT_A_LESSON else "",
        project=_uuid(sent.get("project", "")),
        words=sent.get("q", "").replace("\x00", "").strip()[:WORDS],
    )


def address(filters: queries.Filters, **more: Any) -> str:
    """The inbox with these filters: whoever opens it sees the same questions."""
    asked = {"tab": filters.tab, "kind": filters.kind, "project": filters.project, "q": filters.words, **more}
    asked = {name: value for name, value in asked.items() if value and (name, value) != ("tab", "new")}
    return f"{reverse('review:inbox')}?{urlencode(asked)}" if asked else reverse("review:inbox")


@require_GET
@page()
def inbox(request: HttpRequest) -> HttpResponse:
    """A page of the list, and the card of the question that the address names or of the first that is free."""
    who, filters, after = person_of(request), _filters(request), _uuid(request.GET.get("after", ""))
    reader = queries.Reader(user=who.user_id, seen=visible(request), skipped=skipped(request))
    items, further = queries.page(filters, reader, after)
    named = _uuid(request.GET.get("item", ""))
    listed = {item.pk for item in items}
    found = queries.rows([*items, *([find(request, named)] if named and named not in listed else [])], reader)
    free = "free" in request.GET
    rows, row = [each for each in found if each.item.pk in listed], _chosen(found, named, free=free)
    here = address(filters, after=after)
    tallies = queries.counts(reader)
    context: dict[str, Any] = {
        "filters": filters,
        "filtered": bool(filters.kind or filters.project or filters.words),
        "tabs": [(name, LABELS[name], tallies[name], address(queries.Filters(tab=name))) for name in queries.TABS],
        "kinds": [(kind, KINDS[ReviewKind(kind)]) for kind in ABOUT_A_LESSON],
        "projects": queries.projects(own(request)),
        "rows": [
            {"row": each, "url": address(filters, after=after, item=each.item.pk), "kind": KINDS[each.item.kind]}
            for each in rows
        ],
        "further": address(filters, after=further) if further else "",
        "first": address(filters) if after else "",
        "chosen": row is not None and (free or row.item.pk == named),
        "held": bool(rows) and row is None,
        "here": here,
        "skipped": len(reader.skipped),
        "may_mark": bool(who.everywhere or who.accounts(Role.REVIEWER)),
        "nothing": {} if rows else _nothing(who.user_id, tallies),
    }
    if row is not None:
        onward = _next(rows, row, filters, after)
        context |= card(request, row.item, row.lesson, onward=onward, here=f"{address(filters, item=row.item.pk)}")
        context |= {"onward": onward, "back": _previous(rows, row, filters, after)}
    return render(request, "review/inbox.html", context)


LABELS: Final = {
    "new": "New",
    "second": "Second opinion",
    "returned": "Returned",
    "snoozed": "Snoozed",
    "mine": "Mine",
}


def _chosen(found: list[queries.Row], named: UUID | None, *, free: bool) -> queries.Row | None:
    """The named question, also of another page of the list; else, or once it is answered, the first that is free.

    With `free`, somebody goes on and wants no other's question: if the named one is held by now, the next that is not.
    """
    unresolved = [row for row in found if row.item.status in UNRESOLVED]
    at = next((n for n, row in enumerate(unresolved) if row.item.pk == named), None)
    if at is not None and not (free and unresolved[at].holder):
        return unresolved[at]
    return next((row for row in (*unresolved[at or 0 :], *unresolved[: at or 0]) if not row.holder), None)


def _next(rows: list[queries.Row], row: queries.Row, filters: queries.Filters, after: UUID | None) -> str:
    """Where to go on after this one: the next that nobody else holds, at the end the beginning."""
    at = next((n for n, each in enumerate(rows) if each.item.pk == row.item.pk), -1)
    following = next((each for each in rows[at + 1 :] if not each.holder), None)
    return address(filters, after=after, item=following.item.pk, free=1) if following else address(filters)


def _previous(rows: list[queries.Row], row: queries.Row, filters: queries.Filters, after: UUID | None) -> str:
    at = next((n for n, each in enumerate(rows) if each.item.pk == row.item.pk), 0)
    return address(filters, after=after, item=rows[at - 1].item.pk) if at > 0 else ""


def _nothing(user: int, tallies: dict[str, int]) -> dict[str, Any]:
    """Why the list is empty: nothing matches, all is done, or nothing was ever asked."""
    return {
        "today": queries.today(user),
        "ever": ReviewItem.objects.filter(kind__in=queries.NEW_KINDS).exists(),
        "elsewhere": sum(tallies.values()),
    }


def find(request: HttpRequest, item_id: UUID) -> ReviewItem:
    """The question, if the person may see it. Raises NotFound."""
    found = ReviewItem.objects.filter(visible(request), pk=item_id)
    item = found.select_related(*queries.PEOPLE).first()
    if item is None:
        raise NotFound("There is no such question, or it is in an account that you are no member of.")
    return item


def lesson_of(item: ReviewItem) -> Lesson | None:
    """What a question is about; None where that is gone."""
    return Lesson.objects.filter(pk=item.subject).select_related("lessonstanding", "account", "reviewed_by").first()


def card(request: HttpRequest, item: ReviewItem, lesson: Lesson, *, onward: str, here: str) -> dict[str, Any]:
    """What the card shows and lets a person do; `onward` is where a decision goes on, `here` where it came from."""
    who = person_of(request)
    shown = cards.card(item, lesson, who, own(request))
    decidable = item.status in UNRESOLVED
    open_item = item if decidable else open_item_of(lesson.pk)
    bar = lesson_page.choices(request, lesson, open_item, onward)
    may = bool(bar["may_decide"])
    if shown.holder:
        bar |= {"may_decide": False, "why_not": f"{shown.holder} is reviewing this. Take it over to decide."}
    if item.kind in queries.NEW_KINDS and lesson.state == "active" and not _offers(bar, Verdict.APPROVE):
        words = VERDICTS[Verdict.APPROVE]
        approve = {"verdict": "approve", "words": words, "action": "serve", "emphasis": "", "at_once": True}
        bar["choices"].insert(0, approve)
    return {
        **bar,
        "card": shown,
        "item": item,
        "lesson": lesson,
        "kind": KINDS[item.kind],
        "open": decidable,
        "waits": cards.back(item),
        "may_hold": may and decidable and item.requested_by_id != who.user_id,
        "asked_by_me": item.requested_by_id == who.user_id,
        "here": here,
        "onward": onward,
        "merges": Verdict.MERGE in ACTS and lesson.state in LIVE and bool(shown.near),
        "votes": _votes(lesson) if shown.blind else [],
    }


def _offers(bar: dict[str, Any], verdict: Verdict) -> bool:
    return any(each["verdict"] == verdict.value for each in bar["choices"])


def _votes(lesson: Lesson) -> list[dict[str, Any]]:
    """What an opinion may say, under the keys that do it elsewhere; none is recommended."""
    acts = ((Act.SERVE, "serve"), (Act.KEEP_OUT, "keep_out"), (Act.REJECT, "reject"))
    verdicts = [(verdict_for(act, LessonState(lesson.state)), action) for act, action in acts]
    return [{"verdict": each.value, "words": VERDICTS[each], "action": action} for each, action in verdicts if each]


@require_GET
@page()
def item(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """A question under an address of its own, before and after its answer. Reading it changes nothing."""
    found = find(request, item_id)
    if found.kind not in ABOUT_A_LESSON:
        return HttpResponseRedirect(item_url(found.kind, found.pk, found.subject))
    lesson = lesson_of(found)
    if lesson is None:
        kept = cards.successor(found.subject)
        if kept is None:
            raise NotFound("What this question was about is not there any more.")
        messages.info(request, "The lesson that this was about has become part of this one.")
        return HttpResponseRedirect(reverse("review:lesson", args=[kept]))
    here = reverse("review:item", args=[found.pk])
    context = card(request, found, lesson, onward=reverse("review:inbox"), here=here)
    context |= {
        "answer": None if context["open"] else cards.answer(found),
        "successor": None if lesson.state in LIVE else cards.successor(lesson.pk),
    }
    return render(request, "review/item.html", context)


@require_POST
@page()
def unskip(request: HttpRequest) -> HttpResponse:
    """What was skipped in this session is offered again."""
    request.session.pop(SKIPPED, None)
    return HttpResponseRedirect(reverse("review:inbox"))
