"""What a person does with a question beside answering it: hold it, skip it, put it off, give it away, comment."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.errors import Conflict, Invalid, NotFound
from memory.models import Lesson, ReviewItem
from memory.models.vocabulary import LessonState, Verdict
from memory.rules.reasons import reasons_for
from memory.services import review_queue, second_opinion
from memory.services.bulk_decisions import Act, verdict_for
from memory.services.reading import neighbours_of
from memory.services.review_queue import Until
from review.access import page, person_of, visible
from review.reasons import with_keys
from review.views.deciding import here_or
from review.views.inbox import REMEMBERED, SKIPPED, find, skipped
from review.words import VERDICTS

SERVINGS: Final = 20  # that are offered to wait for
KEEPERS: Final = 5  # lessons to choose the kept one from


def _onward(request: HttpRequest) -> str:
    return here_or(request, request.POST.get("next"), reverse("review:inbox"))


def _go_on(request: HttpRequest, said: str) -> HttpResponse:
    messages.info(request, said)
    return HttpResponseRedirect(_onward(request))


@require_POST
@page()
def claim(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Holds a question, or takes it over from who holds it. The page itself asks without leaving."""
    take = review_queue.take_over if request.POST.get("take_over") else review_queue.claim
    take(item_id, person_of(request))
    if request.headers.get("X-Hold"):
        return HttpResponse(status=204)
    return HttpResponseRedirect(_onward(request))


@require_POST
@page()
def release(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Lets a question go."""
    review_queue.release(item_id, person_of(request))
    if request.headers.get("X-Hold"):
        return HttpResponse(status=204)
    return HttpResponseRedirect(_onward(request))


@require_POST
@page()
def skip(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Leaves a question to others for as long as this session lasts."""
    found = find(request, item_id)
    review_queue.release(found.pk, person_of(request))
    kept = [str(each) for each in skipped(request) if each != found.pk]
    request.session[SKIPPED] = [*kept, str(found.pk)][-REMEMBERED:]
    return _go_on(request, "Skipped. It stays away until you log out or ask for it again.")


def _form(
    request: HttpRequest, item_id: UUID, template: str, context: dict[str, Any], save: Callable[[ReviewItem], str]
) -> HttpResponse:
    """A form on a question: shown, or carried out and left with what was done; a refusal keeps what was typed."""
    item, errors, status = find(request, item_id), {}, 200
    if request.method == "POST":
        try:
            return _go_on(request, save(item))
        except Invalid as refusal:
            errors, status = refusal.errors, 422
    given = request.POST or request.GET
    lesson = Lesson.objects.filter(pk=item.subject).first()
    shared = {"item": item, "lesson": lesson, "errors": errors, "given": given, "next": here_or(
        request, given.get("next"), reverse("review:item", args=[item_id])
    )}  # fmt: skip
    return render(request, template, {**shared, **context}, status=status)


@require_http_methods(["GET", "POST"])
@page()
def snooze(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Puts a question off: until a day, until so many more servings, or until the lesson gets worse."""

    def save(item: ReviewItem) -> str:
        until = until_from(request)
        review_queue.snooze(item.pk, person_of(request), until)
        return "Snoozed. It is listed under Snoozed until it returns."

    return _form(request, item_id, "review/snooze.html", offered(), save)


def offered() -> dict[str, Any]:
    """What the form of a snooze is filled with."""
    return {"day": f"{timezone.now() + timedelta(days=7):%Y-%m-%d}", "servings": SERVINGS}


def until_from(request: HttpRequest) -> Until:
    """What a person wants to wait for. Raises Invalid naming the field."""
    sent = request.POST
    match sent.get("until"):
        case "date":
            try:
                day = datetime.strptime(sent.get("date", ""), "%Y-%m-%d").replace(tzinfo=UTC)
            except ValueError:
                raise Invalid.field("date", "choose a day.") from None
            return Until(date=day)
        case "servings":
            number = sent.get("servings", "")
            if not number.isascii() or not number.isdigit():
                raise Invalid.field("servings", "write a whole number.")
            return Until(servings=int(number[:9]))
        case "worse":
            return Until(worse=True)
    return Until()


@require_POST
@page()
def wake(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Takes a snooze back."""
    review_queue.cancel_snooze(find(request, item_id).pk, person_of(request))
    return _go_on(request, "Back among the open questions.")


@require_http_methods(["GET", "POST"])
@page()
def assign(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Gives a question to somebody, or to nobody."""

    def save(item: ReviewItem) -> str:
        to = request.POST.get("to", "")
        if to and not (to.isascii() and to.isdigit()):
            raise Invalid.field("to", "choose somebody.")
        review_queue.assign(item.pk, person_of(request), int(to) if to else None)
        return "Assigned." if to else "Assigned to nobody."

    people = review_queue.assignable(find(request, item_id), person_of(request))
    return _form(request, item_id, "review/assign.html", {"people": sorted(people.items(), key=lambda p: p[1])}, save)


@require_POST
@page()
def comment(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Says something to whoever looks at the question; the question stays where it is."""
    found = find(request, item_id)
    try:
        review_queue.comment(found.subject, person_of(request), request.POST.get("text", ""))
    except Invalid as refusal:
        context = {"item": found, "errors": refusal.errors, "given": request.POST, "next": _onward(request)}
        return render(request, "review/comment.html", context, status=422)
    return _go_on(request, "Comment saved.")


@require_GET
@page()
def duplicate(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Which lesson says the same and is kept: the nearest ones to choose from, with the reason."""
    found = find(request, item_id)
    lesson = Lesson.objects.filter(pk=found.subject).first()
    if lesson is None:
        raise NotFound("What this question was about is not there any more.")
    context = {
        "item": found,
        "lesson": lesson,
        "near": neighbours_of(lesson, KEEPERS),
        "words": VERDICTS[Verdict.MERGE],
        "reasons": with_keys(reasons_for(Verdict.MERGE.value)),
        "next": here_or(request, request.GET.get("next"), reverse("review:inbox")),
    }
    return render(request, "review/duplicate.html", context)


@require_POST
@page()
def opinion(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Saves what the person thinks; from then on they see what the others think."""
    sent, found = request.POST, find(request, item_id)
    try:
        version = int(sent.get("expected_version", ""))
    except ValueError:
        raise Invalid.field("expected_version", "reload the page and decide again.") from None
    second_opinion.save(found.pk, person_of(request), opinion_of(sent.get("decision", "")), version)
    messages.info(request, "Your opinion is saved. Whoever asked decides.")
    return HttpResponseRedirect(reverse("review:item", args=[found.pk]))


def opinion_of(value: str) -> Verdict:
    """A verdict that an opinion can have. Raises Invalid."""
    if value not in {verdict.value for verdict in second_opinion.OPINIONS}:
        raise Invalid.field("decision", "choose what you would do.")
    return Verdict(value)


@require_http_methods(["GET", "POST"])
@page()
def ask_second(request: HttpRequest, lesson_id: UUID) -> HttpResponse:
    """Asks somebody else about a lesson; what the person thinks is kept hidden until the other has answered."""
    lesson = Lesson.objects.filter(visible(request), pk=lesson_id).first()
    if lesson is None:
        raise NotFound("There is no such lesson, or it is in an account that you are no member of.")
    here = here_or(request, (request.POST or request.GET).get("next"), reverse("review:lesson", args=[lesson_id]))
    if request.method == "POST":
        mine = request.POST.get("decision", "")
        second_opinion.request(lesson_id, person_of(request), opinion_of(mine) if mine else None)
        messages.info(request, "Asked for a second opinion. You are given the question back with the answer.")
        return HttpResponseRedirect(here)
    acts = (Act.SERVE, Act.KEEP_OUT, Act.REJECT)
    verdicts = [verdict for act in acts if (verdict := verdict_for(act, LessonState(lesson.state)))]
    if not verdicts:
        raise Conflict("This lesson is out of service. There is nothing to decide about it but a restore.")
    context = {"lesson": lesson, "choices": [(each.value, VERDICTS[each].label) for each in verdicts], "next": here}
    return render(request, "review/second_opinion.html", context)
