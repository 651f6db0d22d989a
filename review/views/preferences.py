"""What people want, how each wish came to say what it says, and any two of its versions side by side."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory.errors import NotFound
from memory.models import Preference
from memory.models.vocabulary import Role
from memory.services import preference_history
from memory.services.preference_history import Version
from review.access import own, page, person_of
from review.diff import word_diff
from review.queries import preferences as queries

NEEDS = "Changing a preference needs the role maintainer. A maintainer of the account can give it."


@require_GET
@page()
def index(request: HttpRequest) -> HttpResponse:
    """Every preference of the person's accounts, each with its latest change."""
    words = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    given = request.GET.get("page", "")
    number = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    rows, more = queries.listed(own(request), words, number)
    context = {
        "rows": rows,
        "q": words,
        "number": number,
        "more": more,
        "several": len({row.account for row in rows}) > 1,
        "member": bool(rows) or queries.has_accounts(own(request, "pk")),
    }
    return render(request, "review/preferences.html", context)


def find(request: HttpRequest, preference_id: UUID) -> Preference:
    """The preference, if it is of one of the person's accounts. Raises NotFound."""
    found = Preference.objects.filter(own(request), pk=preference_id).select_related("account").first()
    if found is None:
        raise NotFound("There is no such preference, or it is in an account that you are no member of.")
    return found


def rights(request: HttpRequest, preference: Preference) -> dict[str, Any]:
    """Whether the person may change it; else why not."""
    may = person_of(request).may(Role.MAINTAINER, preference.account_id)
    return {"may": may, "why_not": "" if may else NEEDS}


@require_GET
@page()
def detail(request: HttpRequest, preference_id: UUID) -> HttpResponse:
    """The present text, every version, and what changed last. Reading it changes nothing."""
    preference = find(request, preference_id)
    versions = preference_history.versions_of(preference)
    latest, earlier = versions[0], versions[1] if len(versions) > 1 else None
    context = {
        "preference": preference,
        "lines": queries.rail(preference, versions),
        "latest": latest,
        "earlier": earlier,
        "spans": word_diff(earlier.text, latest.text) if earlier else [],
        "toggled": changed_state(earlier, latest) if earlier else "",
        "no_revert": why_no_revert(preference, versions, latest),
        **rights(request, preference),
    }
    return render(request, "review/preference.html", context)


@require_GET
@page()
def version(request: HttpRequest, preference_id: UUID) -> HttpResponse:
    """The number of the present version, for a page that asks whether it still shows it."""
    return HttpResponse(str(find(request, preference_id).revision), content_type="text/plain")


def changed_state(before: Version, after: Version) -> str:
    """What became of whether it is handed out; empty if nothing did."""
    if before.enabled == after.enabled:
        return ""
    return "Switched on: agents are handed it again." if after.enabled else "Switched off: agents are not handed it."


def why_no_revert(preference: Preference, versions: list[Version], version: Version) -> str:
    """Why the refinement that made this version cannot be reverted; empty if it can."""
    if version.entry is None:
        return "Nothing made this version but what was learned: there is no refinement to revert."
    if version.number != preference.revision:
        return (
            f"Refinement {version.number} is not the latest any more: version {preference.revision} followed. "
            f"Restore version {version.entry.before_version} instead."
        )
    return version.flaw or preference_history.find(versions, version.entry.before_version).flaw


@require_GET
@page()
def compare(request: HttpRequest, preference_id: UUID) -> HttpResponse:
    """Any two versions, the earlier one first, whichever was named first. Without two it asks for them."""
    preference = find(request, preference_id)
    versions = preference_history.versions_of(preference)
    named = sorted({int(n) for key in "ab" if (n := request.GET.get(key, "")).isascii() and n.isdigit() and len(n) < 9})
    context: dict[str, Any] = {
        "preference": preference,
        "versions": versions,
        "several": len(versions) > 1,
        "side": request.GET.get("view") == "side",
    }
    if len(named) == 2:
        before, after = (preference_history.find(versions, number) for number in named)
        context |= {
            "before": before,
            "after": after,
            "spans": word_diff(before.text, after.text),
            "toggled": changed_state(before, after),
            "between": queries.rail(preference, [v for v in versions if before.number < v.number <= after.number]),
        }
    return render(request, "review/preference_compare.html", context)
