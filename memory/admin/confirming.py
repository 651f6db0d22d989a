"""Actions on rows that ask first: what would be done, to which rows, and with which choices."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

CONFIRMED: Final = "confirmed"
AT_ONCE: Final = 500  # rows that one act takes: it is one transaction, and a page lists them


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a person confirms."""

    title: str  # of the page and of its button
    words: str  # what follows
    form: type[forms.Form] = forms.Form  # the choices that there are


def ask(
    page: "ModelAdmin[Any]", request: HttpRequest, rows: QuerySet[Any], question: Question
) -> dict[str, Any] | TemplateResponse:
    """The choices of somebody who has confirmed; else the page that asks. An act takes the first AT_ONCE rows."""
    form = question.form(request.POST if CONFIRMED in request.POST else None)
    if form.is_valid():
        return dict(form.cleaned_data)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "title": question.title,
        "words": question.words,
        "form": form,
        "rows": rows[:AT_ONCE],
        "at_once": AT_ONCE,
        "total": rows.count(),
        "action": request.POST.get("action", ""),
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "checkbox": ACTION_CHECKBOX_NAME,
        "across": request.POST.get("select_across", "0"),
        "confirmed": CONFIRMED,
    }
    return TemplateResponse(request, "admin/confirm.html", context)
