"""The sheet of keys."""

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from review.access import page
from review.keys import KEYS

SCOPES = {
    "go": "Go to",
    "page": "Everywhere",
    "lesson": "Lesson, inbox and quarantine",
    "contradiction": "Contradictions",
    "judge": "Outcomes",
    "preference": "Preferences",
    "prune": "Prune plan",
    "board": "Quarantine board",
    "playground": "Retrieval",
    "health": "Health",
    "reason": "In a reason dialog",
}


@require_GET
@page()
def sheet(request: HttpRequest) -> HttpResponse:
    """Every key, by where it works."""
    groups = [(SCOPES[scope], list(keys)) for scope, keys in groupby(KEYS, key=lambda key: key.scope)]
    return render(request, "review/keys.html", {"groups": groups})
