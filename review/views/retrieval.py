"""The retrieval playground: what would be handed out for a task, and why. A look-up that counts as no serving."""

from datetime import UTC, datetime, time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from review.access import page
from review.accounts import choose
from review.charts import score_bar
from review.forms.playground import PlaygroundForm
from review.queries.retrieval import Answer, Asked, K, ask


@require_GET
@page()
def playground(request: HttpRequest) -> HttpResponse:
    """The form, and below it the answer to what the address asks."""
    choice = choose(request)
    account = choice.account or next(iter(choice.options), None)
    form = PlaygroundForm(request.GET if "q" in request.GET else None)
    context: dict[str, Any] = {"form": form, "choice": choice, "account": account, "k": request.GET.get("k", K)}
    if form.is_bound and account is not None and form.is_valid():
        given = form.cleaned_data
        asked = Asked(
            text=given["q"],
            account=account,
            now=_moment(given["date"]),
            k=given["k"] or K,
            probation=given["probation"],
            quarantined=given["quarantined"],
        )
        context |= _shown(ask(asked), asked)
    return render(request, "review/retrieval.html", context, status=422 if form.errors else 200)


def _moment(day: Any) -> datetime:
    """The end of a day, or now: a lesson is as old as it was then."""
    return datetime.combine(day, time.max, tzinfo=UTC) if day else timezone.now()


def _shown(answer: Answer, asked: Asked) -> dict[str, Any]:
    bars = [
        score_bar(f"hit-{hit.rank}", hit.parts, title=f"Score of result {hit.rank}", top=answer.top)
        for hit in answer.hits
    ]
    return {"answer": answer, "asked": asked, "hits": list(zip(answer.hits, bars, strict=True))}
